import pytest
import torch
from factories import (
    MakeNet,
    MakeWorker,
    learn_request,
    learning,
    same_bits,
    snapshot,
)

from foul.federation.messages import Request, Tensors


@pytest.fixture
def sent(make_net: MakeNet) -> Tensors:
    return snapshot(make_net())


def test_the_answer_has_the_tensors_that_were_sent(make_worker: MakeWorker, sent: Tensors) -> None:
    before = {name: tensor.clone() for name, tensor in sent.items()}
    reply = make_worker().perform(learn_request("north-0", sent))
    assert list(reply.tensors) == list(sent)
    for name, tensor in reply.tensors.items():
        assert tensor.shape == sent[name].shape
        assert tensor.dtype == sent[name].dtype
        assert tensor.is_contiguous()
    assert same_bits(sent, before)


def test_validation_is_of_the_received_network(make_worker: MakeWorker, sent: Tensors) -> None:
    worker = make_worker()
    reply = worker.perform(learn_request("north-0", sent))
    asked = worker.perform(Request("north-0", "evaluate", 0, sent, {"splits": ["validation"]}))
    assert reply.numbers["validation"] == asked.numbers["validation"]
    assert reply.numbers["samples"] == 27


@pytest.mark.parametrize("augment", [{"flip": True}, {"crop": 0.3}])
def test_augmentation_is_for_learning_only(
    make_worker: MakeWorker, sent: Tensors, augment: dict[str, object]
) -> None:
    plain = make_worker().perform(learn_request("north-0", sent))
    varied = make_worker().perform(learn_request("north-0", sent, learning(augment=augment)))
    assert varied.numbers["validation"] == plain.numbers["validation"]
    assert not same_bits(varied.tensors, plain.tensors)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_reptile_goes_part_of_the_way(
    make_worker: MakeWorker, sent: Tensors, epsilon: float
) -> None:
    """Decision 11: theta + epsilon (theta_inner - theta)."""
    inner = make_worker().perform(learn_request("north-0", sent))
    config = learning(l2u={"reptile_step": epsilon})
    outer = make_worker().perform(learn_request("north-0", sent, config))
    for name, tensor in outer.tensors.items():
        if tensor.is_floating_point():
            start, end = sent[name].double(), inner.tensors[name].double()
            expected = start + epsilon * (end - start)
            torch.testing.assert_close(tensor.double(), expected, atol=1e-6, rtol=1e-5)
        else:
            assert tensor.equal(inner.tensors[name])
    assert outer.numbers == inner.numbers


def test_supervised_learning_has_no_outer_step(make_worker: MakeWorker, sent: Tensors) -> None:
    configs = (learning(objective="supervised", l2u={"reptile_step": e}) for e in (1.0, 0.5))
    one, other = (make_worker().perform(learn_request("east-0", sent, c)) for c in configs)
    assert same_bits(one.tensors, other.tensors)


def test_losses_are_named_by_phase_and_term(make_worker: MakeWorker, sent: Tensors) -> None:
    worker = make_worker()
    l2u = worker.perform(learn_request("north-0", sent))
    assert set(l2u.numbers["losses"]) == {
        *("generator/rec", "generator/k", "generator/v"),
        *("mid/gtc", "mid/k", "mid/joint"),
    }
    plain = worker.perform(learn_request("north-0", sent, learning(objective="supervised")))
    assert set(plain.numbers["losses"]) == {"supervised/joint", "supervised/gtc"}


def test_the_rounds_rate_scales_the_steps(make_worker: MakeWorker, sent: Tensors) -> None:
    worker = make_worker()
    full, none = (
        worker.perform(learn_request("north-0", sent, rate_scale=scale)) for scale in (1.0, 0.0)
    )
    assert not same_bits(full.tensors, sent)
    unmoved = {name for name, tensor in none.tensors.items() if tensor.equal(sent[name])}
    buffers = {name for name in sent if "running" in name or "num_batches" in name}
    # Statistics still follow the data.
    assert unmoved == set(sent) - buffers


def test_it_may_travel_in_half_the_bytes(make_worker: MakeWorker, sent: Tensors) -> None:
    """What was sent in bfloat16 is where training starts; the answer is rounded once."""
    config = learning(objective="supervised")
    worker = make_worker()
    start = {n: t.to(torch.bfloat16) for n, t in sent.items() if t.is_floating_point()}
    wide = worker.perform(
        learn_request("north-0", {n: t.float() for n, t in start.items()}, config)
    )
    half = worker.perform(learn_request("north-0", start, config, precision="bfloat16"))
    assert half.numbers == wide.numbers
    assert half.tensors.keys() == wide.tensors.keys()
    for name, tensor in half.tensors.items():
        assert tensor.dtype == torch.bfloat16
        assert tensor.equal(wide.tensors[name].to(torch.bfloat16))
    assert not same_bits(half.tensors, start)
