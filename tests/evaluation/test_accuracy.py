import pytest
import torch
from factories import MakeNet, MakeWorker, snapshot
from hypothesis import given
from hypothesis import strategies as st

from foul.client.worker import Worker
from foul.config.schema import FederationConfig
from foul.data import ClientData, Samples, to_float
from foul.evaluation.accuracy import Accuracies, Score, evaluate
from foul.federation.federation import Federation, QuorumError
from foul.federation.inprocess import InProcessEngine
from foul.federation.messages import Reply, Request, Tensors
from foul.models import DEPLOYED, DisentangledNet, part_of

counts = st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))


class Recording(InProcessEngine):
    """Keeps what was asked; the named client fails."""

    def __init__(self, worker: Worker, fails: str = "") -> None:
        super().__init__(worker)
        self.asked: list[Request] = []
        perform = worker.perform

        def recorded(request: Request) -> Reply:
            self.asked.append(request)
            return (
                Reply(request.client, error="gone") if request.client == fails else perform(request)
            )

        worker.perform = recorded  # type: ignore[method-assign]


@pytest.fixture
def tensors(make_net: MakeNet) -> Tensors:
    net = make_net(seed=2)
    net(torch.randn(64, 3, 16, 16))
    return snapshot(net)


def correct(net: DisentangledNet, samples: Samples) -> int:
    images, labels = samples.batch(torch.arange(len(samples)))
    with torch.no_grad():
        return int((net.eval()(to_float(images)).argmax(1) == labels).sum())


@given(st.lists(counts, max_size=6))
def test_sums_of_scores_are_scores_of_the_union(values: list[tuple[int, int, int]]) -> None:
    total = sum((Score(a, b, c, float(a + b)) for a, b, c in values), Score())
    columns = list(zip(*values, strict=True)) or [(0,)] * 3
    assert (total.samples, total.correct, total.causal_correct) == tuple(map(sum, columns))
    assert total.loss == sum(a + b for a, b, _ in values)


def test_fractions() -> None:
    assert Score(8, 6, 4, 2.0).to_dict() == {
        "samples": 8,
        "accuracy": 0.75,
        "causal_accuracy": 0.5,
        "loss": 0.25,
    }
    assert Score().to_dict() == {
        "samples": 0,
        "accuracy": None,
        "causal_accuracy": None,
        "loss": None,
    }


def test_totals_weigh_samples_and_not_clients() -> None:
    scores = {"a": {"test": Score(1, 1)}, "b": {"test": Score(3, 0)}, "c": {"test": Score(6, 3)}}
    accuracies = Accuracies(scores, {"a": "ink", "b": "ink", "c": "oil"})
    assert accuracies.total("test") == Score(10, 4)
    assert accuracies.total("test", ["a", "c"]) == Score(7, 4)
    assert accuracies.by_domain("test") == {"ink": Score(4, 1), "oil": Score(6, 3)}
    values = accuracies.to_dict()
    assert values["test"]["all"]["accuracy"] == 0.4
    assert values["test"]["domains"]["ink"]["accuracy"] == 0.25
    assert set(values["test"]["clients"]) == {"a", "b", "c"}


@pytest.mark.parametrize("head", ["joint", "causal"])
def test_counts_are_the_networks_own_answers(
    make_worker: MakeWorker,
    make_net: MakeNet,
    tiny_clients: tuple[ClientData, ...],
    tensors: Tensors,
    head: str,
) -> None:
    federation = Federation(InProcessEngine(make_worker(head=head)), FederationConfig(), seed=0)
    accuracies = evaluate(federation, tensors)
    net = make_net(head=head)
    net.load_state_dict(tensors)
    for client in tiny_clients:
        for split in ("train", "validation", "test"):
            samples = getattr(client, split)
            score = accuracies.clients[client.id][split]
            assert (score.samples, score.correct) == (len(samples), correct(net, samples))
            if head == "causal":
                assert score.correct == score.causal_correct
    assert accuracies.total("test").samples == 96
    assert accuracies.by_domain("test").keys() == {"north", "east", "south", "west"}


def test_only_the_deployed_model_is_sent_and_paid_for(
    make_worker: MakeWorker, tensors: Tensors
) -> None:
    engine = Recording(make_worker())
    federation = Federation(engine, FederationConfig(), seed=0)
    evaluate(federation, tensors, splits=("test",), clients=federation.clients[:2])
    assert [request.client for request in engine.asked] == ["east-0", "east-1"]
    assert {part_of(name) for name in engine.asked[0].tensors} == set(DEPLOYED)
    assert federation.ledger.total("evaluation").flops_client > 0
    assert federation.ledger.total("learning").bytes == 0


def test_a_client_that_fails_is_left_out(make_worker: MakeWorker, tensors: Tensors) -> None:
    federation = Federation(Recording(make_worker(), fails="east-1"), FederationConfig(), seed=0)
    accuracies = evaluate(federation, tensors, splits=("test",))
    assert "east-1" not in accuracies.clients
    assert accuracies.by_domain("test")["east"].samples == 12
    strict = Federation(
        Recording(make_worker(), fails="east-1"), FederationConfig(quorum=1.0), seed=0
    )
    with pytest.raises(QuorumError, match="east-1: gone"):
        evaluate(strict, tensors, splits=("test",))
