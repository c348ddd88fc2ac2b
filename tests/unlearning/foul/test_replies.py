import pytest

from foul.federation.messages import ClientInfo
from foul.unlearning.foul.replies import Replies
from foul.unlearning.request import ForgetRequest


def info(name: str) -> ClientInfo:
    return ClientInfo(name, "d", {"train": 1})


def test_losses_are_means_over_samples_of_each_role() -> None:
    replies = Replies()
    replies.losses = {"a": 1.0, "b": 3.0, "c": 7.0}
    replies.weights = {"a": 3.0, "b": 1.0, "c": 5.0}
    request = ForgetRequest("client:c", (info("c"),), (info("a"), info("b"), info("away")))
    assert replies.mean_losses(request) == {"retain": pytest.approx(1.5), "forget": 7.0}


def test_without_an_answer_there_is_no_loss() -> None:
    request = ForgetRequest("client:c", (info("c"),), (info("a"),))
    assert Replies().mean_losses(request) == {}


def test_clients_come_in_the_order_of_their_names() -> None:
    replies = Replies()
    replies.deltas, replies.weights = {"b": {}, "a": {}}, {"a": 1.0, "b": 2.0}
    assert replies.sorted() == (["a", "b"], [{}, {}], [1.0, 2.0])


@pytest.mark.parametrize(
    ("fairness", "shares"),
    [(0.0, [10.0, 10.0, 40.0]), (1.0, [5.0, 15.0, 40.0]), (2.0, [2.5, 22.5, 40.0])],
)
def test_who_still_loses_counts_more(fairness: float, shares: list[float]) -> None:
    replies = Replies(fairness)
    replies.deltas = {"a": {}, "b": {}, "gone": {}}
    replies.weights = {"a": 10.0, "b": 10.0, "gone": 40.0}
    replies.losses = {"a": 1.0, "b": 3.0}
    assert replies.sorted()[2] == pytest.approx(shares)


@pytest.mark.parametrize(
    ("losses", "shares"),
    [
        ({}, [1.0, 2.0, 3.0]),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, [1.0, 2.0, 3.0]),
        # As those of forget clients, whose shares do not count, may be larger.
        ({"a": 0.0, "b": 0.0, "c": 5.0}, [0.0, 0.0, 9.0]),
        ({"a": float("nan"), "b": 1.0, "c": 3.0}, [1.0, 1.0, 4.5]),
        ({"a": float("inf"), "b": 1.0, "c": 3.0}, [1.0, 1.0, 4.5]),
        ({"a": -1.0, "b": 1.0, "c": 2.0}, [0.0, 2.0, 6.0]),
    ],
)
def test_whatever_clients_say_they_lost_shares_are_numbers(
    losses: dict[str, float], shares: list[float]
) -> None:
    replies = Replies(fairness=1.0)
    replies.losses = losses
    replies.deltas = {"a": {}, "b": {}, "c": {}}
    replies.weights = {"a": 1.0, "b": 2.0, "c": 3.0}
    _, _, told = replies.sorted()
    assert told == pytest.approx(shares, abs=1e-9)
    # Never nothing: a mean of clients that lose nothing is a mean.
    assert min(told) > 0
    assert told[1] / told[0] == pytest.approx(2.0) or losses["a"] != losses["b"]


def test_no_client_can_take_the_mean_by_saying_that_it_lost_much() -> None:
    replies = Replies(fairness=1.0, most=2.0)
    replies.deltas, replies.weights = {"a": {}, "b": {}}, {"a": 1.0, "b": 1.0}
    replies.losses = {"a": 1.0, "b": 1e9}
    one, other = replies.sorted()[2]
    assert other == pytest.approx(2 * one)


def test_with_a_single_class_nobody_loses_and_all_count() -> None:
    replies = Replies(fairness=1.0, most=0.0)
    replies.deltas, replies.weights = {"a": {}, "b": {}}, {"a": 1.0, "b": 2.0}
    replies.losses = {"a": 0.5, "b": 0.0}
    assert replies.sorted()[2] == pytest.approx([1.0, 2.0])
