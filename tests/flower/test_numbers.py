from typing import Any

import pytest
from factories import MakeNet, learn_request, snapshot

from foul.client.worker import Worker
from foul.data import ClientData
from foul.federation.messages import Request
from foul.flower.numbers import unfit

SCORE: dict[str, Any] = {"samples": 3, "correct": 2, "causal_correct": 2, "loss": 0.5}
LEARNED: dict[str, Any] = {"samples": 9, "validation": SCORE, "losses": {"mid/gtc": 1.0}}


def asked(task: str, **settings: object) -> Request:
    return Request("a", task, 1, {}, settings)


def test_what_tasks_really_answer_is_fit(
    tiny_clients: tuple[ClientData, ...], make_net: MakeNet
) -> None:
    net = make_net()
    request = learn_request(tiny_clients[0].id, snapshot(net))
    reply = Worker(tiny_clients, net).perform(request)
    assert not reply.error
    assert unfit(request, reply.numbers) == ""


@pytest.mark.parametrize("count", [-1, 1.5, "9", None, True, float("nan"), [9]])
def test_a_weight_must_be_a_count(count: object) -> None:
    assert "number samples cannot be used" in unfit(asked("learn"), LEARNED | {"samples": count})


@pytest.mark.parametrize("name", LEARNED)
def test_a_number_that_is_missing_is_named(name: str) -> None:
    rest = {key: value for key, value in LEARNED.items() if key != name}
    assert f"its number {name} " in unfit(asked("learn"), rest)


def test_a_loss_may_have_diverged() -> None:
    for loss in (float("nan"), float("inf")):
        assert unfit(asked("learn"), LEARNED | {"losses": {"mid/gtc": loss}}) == ""


def test_every_split_that_was_asked_for_must_be_told() -> None:
    request = asked("evaluate", splits=["train", "test"])
    assert unfit(request, {"train": SCORE, "test": SCORE}) == ""
    assert "split 'test'" in unfit(request, {"train": SCORE})
    assert "train.correct" in unfit(request, {"train": {"samples": 1}, "test": SCORE})


def test_a_probe_answers_for_every_point() -> None:
    request = asked("probe", points=[0.0, 0.5])
    assert unfit(request, {"samples": 9, "correct": [1, 2]}) == ""
    assert "1 points" in unfit(request, {"samples": 9, "correct": [1]})


@pytest.mark.parametrize(
    ("request_", "numbers"),
    [
        (asked("evaluate", splits=["test"]), {"test": SCORE | {"correct": 4}}),
        (asked("evaluate", splits=["test"]), {"test": SCORE | {"causal_correct": 4}}),
        (asked("learn"), LEARNED | {"validation": SCORE | {"correct": 4}}),
        (asked("probe", points=[0.0, 0.5]), {"samples": 3, "correct": [1, 4]}),
        (asked("probed"), {"samples": 3, "correct": 4}),
        (asked("triggered"), {"samples": 3, "fooled": 4}),
    ],
)
def test_no_more_answers_than_samples_are_right(request_: Request, numbers: Any) -> None:
    assert "4 of 3 samples" in unfit(request_, numbers)


def test_the_scores_of_an_unlearning_client_must_be_there() -> None:
    request = asked("unlearn", splits=["validation"])
    told = {"samples": 9, "loss": 0.1, "scores": {"validation": SCORE}}
    assert unfit(request, told) == ""
    assert "split 'validation'" in unfit(request, told | {"scores": {}})
    assert "scores.validation.correct" in unfit(
        request, told | {"scores": {"validation": {"samples": 1}}}
    )


def test_tasks_that_answer_with_tensors_may_say_anything() -> None:
    assert unfit(asked("outputs"), {"whatever": [1]}) == ""
