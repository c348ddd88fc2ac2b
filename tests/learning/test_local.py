from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from factories import NO_FEATURES, MakeNet, changed_parts, learning, snapshot
from torch import Tensor

from foul.client.context import TaskContext
from foul.client.flops import FlopMeter
from foul.config.schema import LearningConfig
from foul.data import ClientData, to_float
from foul.learning.local import LocalTraining, Phase, Terms, select_parameters
from foul.learning.objectives import OBJECTIVES
from foul.models import DisentangledNet, part_of

Batch = tuple[Tensor, Tensor]


@pytest.fixture
def net(make_net: MakeNet) -> DisentangledNet:
    return make_net()


def training(
    net: DisentangledNet,
    client: ClientData,
    config: LearningConfig,
    round: int = 1,
    meter: FlopMeter | None = None,
    **settings: float,
) -> LocalTraining:
    values: Mapping[str, float] = {"seed": 0, **settings}
    context = TaskContext(
        client, net, torch.device("cpu"), meter or FlopMeter(), NO_FEATURES, round, {}, values
    )
    return LocalTraining(context, config)


def batches_of(
    trainer: LocalTraining, net: DisentangledNet, epochs: float = 1.0, min_steps: int = 1
) -> list[Batch]:
    """The batches that a phase shows to its loss."""
    seen: list[Batch] = []

    def loss(images: Tensor, labels: Tensor) -> Terms:
        seen.append((images.clone(), labels))
        return {"nothing": net.xi.bias.sum() * 0}

    trainer.run(Phase("test", ("xi",), epochs, 0.1, loss, min_steps=min_steps))
    return seen


@pytest.mark.parametrize(
    ("epochs", "steps"), [(0.01, 1), (0.25, 1), (0.5, 2), (1, 4), (1.25, 5), (3, 12)]
)
def test_epochs_are_steps(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...], epochs: float, steps: int
) -> None:
    """27 samples in batches of 8 are four steps."""
    batches = batches_of(training(net, tiny_clients[0], learning()), net, epochs)
    assert [len(labels) for _, labels in batches] == ([8, 8, 8, 3] * 3)[:steps]


def test_what_a_step_costs_depends_on_the_parts_that_are_trained(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    def loss(images: Tensor, labels: Tensor) -> Terms:
        return {"ce": torch.nn.functional.cross_entropy(net(images), labels)}

    meter = FlopMeter()
    spent = []
    for parts in (("V",), ("head",), ("V",)):
        before = meter.total
        training(net, tiny_clients[0], learning(), meter=meter).run(
            Phase("unlearn", parts, 1.0, 0.1, loss)
        )
        spent.append(meter.total - before)
    assert spent[0] == spent[2] > spent[1]


@pytest.mark.parametrize(
    ("epochs", "least", "steps"), [(0.25, 1, 1), (0.25, 3, 3), (0.5, 6, 6), (2, 6, 8)]
)
def test_at_least_so_many_steps_however_few_the_samples(
    net: DisentangledNet,
    tiny_clients: tuple[ClientData, ...],
    epochs: float,
    least: int,
    steps: int,
) -> None:
    batches = batches_of(training(net, tiny_clients[0], learning()), net, epochs, least)
    assert [len(labels) for _, labels in batches] == ([8, 8, 8, 3] * 3)[:steps]


def rows(batches: list[Batch]) -> Tensor:
    """The images of these batches as rows in an order of their own."""
    flat = torch.cat([images.flatten(1) for images, _ in batches])
    return flat[torch.argsort(flat[:, 0] + flat[:, 1] * 7 + flat.sum(1))]


def test_each_epoch_shows_every_sample_once_as_it_is(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    batches = batches_of(training(net, client, learning()), net, 2)
    images, labels = client.train.batch(torch.arange(27))
    expected = rows([(to_float(images), labels)])
    first, second = batches[:4], batches[4:]
    assert rows(first).equal(expected)
    assert rows(second).equal(expected)
    assert not torch.cat([x for x, _ in first]).equal(torch.cat([x for x, _ in second]))


@pytest.mark.parametrize("options", [{"flip": True}, {"crop": 0.5}])
def test_augmentation_changes_images_and_not_the_order(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...], options: dict[str, object]
) -> None:
    client = tiny_clients[0]
    plain = batches_of(training(net, client, learning()), net)
    varied = batches_of(training(net, client, learning(augment=options)), net)
    assert all(
        one[1].equal(other[1]) and not one[0].equal(other[0])
        for one, other in zip(plain, varied, strict=True)
    )


def order(net: DisentangledNet, client: ClientData, round: int = 1) -> Tensor:
    return torch.cat([x for x, _ in batches_of(training(net, client, learning(), round), net)])


def test_randomness_is_addressed_by_round_and_client(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    client = tiny_clients[0]
    twin = replace(client, id="another")
    assert order(net, client).equal(order(net, client))
    assert not order(net, client).equal(order(net, client, round=2))
    assert not order(net, client).equal(order(net, twin))


def test_a_client_with_nothing_to_train_on_says_so(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    empty = replace(tiny_clients[0], train=tiny_clients[0].train.subset([]))
    with pytest.raises(ValueError, match="no training samples"):
        batches_of(training(net, empty, learning()), net)


def test_a_client_with_one_sample_trains_on_it(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    single = replace(tiny_clients[0], train=tiny_clients[0].train.subset([5]))
    assert [len(y) for _, y in batches_of(training(net, single, learning()), net, 2)] == [1, 1]


def test_steps_are_those_of_sgd(net: DisentangledNet, tiny_clients: tuple[ClientData, ...]) -> None:
    """Momentum, weight decay and the round's rate, with plain numbers."""
    config = learning(momentum=0.9, weight_decay=0.01, max_grad_norm=0)
    trainer = training(net, tiny_clients[0], config, rate_scale=0.5)
    with torch.no_grad():
        net.xi.bias.fill_(2.0)
    trainer.run(Phase("test", ("xi",), 1, 0.2, lambda x, y: {"square": net.xi.bias.pow(2).sum()}))
    value, velocity = 2.0, 0.0
    for _ in range(4):
        velocity = 0.9 * velocity + 2 * value + 0.01 * value
        value -= 0.2 * 0.5 * velocity
    torch.testing.assert_close(net.xi.bias.detach(), torch.full((3,), value))


@pytest.mark.parametrize(("limit", "moved"), [(0, 3e4), (5.0, 5.0), (0.1, 0.1), (1e9, 3e4)])
def test_gradients_are_clipped_to_their_norm(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...], limit: float, moved: float
) -> None:
    config = learning(momentum=0.0, weight_decay=0.0, max_grad_norm=limit)
    slope = 3e4 / 3**0.5
    before = net.xi.bias.detach().clone()
    training(net, tiny_clients[0], config).run(
        Phase("test", ("xi",), 0.01, 1.0, lambda x, y: {"slope": slope * net.xi.bias.sum()})
    )
    assert (net.xi.bias.detach() - before).norm().item() == pytest.approx(moved, rel=1e-4)


def test_all_terms_are_descended_and_reported_per_sample(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    config = learning(momentum=0.0, weight_decay=0.0, max_grad_norm=0)
    before = net.xi.bias.detach().clone()
    losses = training(net, tiny_clients[0], config).run(
        Phase(
            "two",
            ("xi",),
            1,
            0.1,
            lambda x, y: {"label": y.float().mean(), "slope": net.xi.bias[0]},
        )
    )
    assert losses["two/label"] == pytest.approx(tiny_clients[0].train.targets.float().mean().item())
    assert set(losses) == {"two/label", "two/slope"}
    moved = net.xi.bias.detach() - before
    torch.testing.assert_close(moved, torch.tensor([-0.4, 0.0, 0.0]))


def test_only_chosen_parts_are_trainable(net: DisentangledNet) -> None:
    chosen = select_parameters(net, ("K", "xi"))
    trainable = {name for name, p in net.named_parameters() if p.requires_grad}
    assert {part_of(name) for name in trainable} == {"K", "xi"}
    assert len(chosen) == len(trainable)
    assert len(select_parameters(net, ("V",))) == len(list(net.V.parameters()))
    assert not any(p.requires_grad for p in net.K.parameters())


def test_single_tensors_can_be_chosen(net: DisentangledNet) -> None:
    assert select_parameters(net, ("V.mean.weight", "xi")).keys() == {
        *("V.mean.weight", "xi.weight", "xi.bias")
    }
    assert [name for name, p in net.V.named_parameters() if p.requires_grad] == ["mean.weight"]


def test_a_phase_trains_in_training_mode(
    net: DisentangledNet, tiny_clients: tuple[ClientData, ...]
) -> None:
    net.eval()
    batches_of(training(net, tiny_clients[0], learning()), net, 0.1)
    assert all(module.training for module in net.modules())


@pytest.mark.parametrize(("after", "moves"), [(0, True), (2, True), (1, False)])
def test_batch_statistics_can_be_fixed_after_a_round(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], after: int, moves: bool
) -> None:
    net = make_net()
    config = learning(fix_statistics_after=after)
    before = snapshot(net)
    run = training(net, tiny_clients[0], config, round=2)
    for phase in OBJECTIVES["l2u"].phases(net, config, run.generator):
        run.run(phase)
    statistics = [name for name in before if "running_" in name]
    assert statistics
    for name in statistics:
        assert torch.equal(before[name], net.state_dict()[name]) is not moves
    assert changed_parts(before, snapshot(net)) >= {"E", "K", "V"}
