import pytest

from foul.report.headline import headline, missing_retrain

from .reported import THREE, result, rows


def test_the_nearest_method_and_what_it_took() -> None:
    told = " ".join(headline(rows(*THREE, result("continue", 0.85))))
    assert "foul comes nearest to Retrain: it is 3.8 points off (the learned model: 10.0)." in told
    assert "went from 90.0 % to 50.0 %; Retrain has 60.0 %" in told
    assert "it forgot 10.0 points more than it should" in told
    assert "It took 25 % of the traffic and 25 % of the FLOPs of retraining." in told


@pytest.mark.parametrize(
    ("fa", "verdict"),
    [(0.605, "within a point of it"), (0.7, "it still knows 10.0 points more"), (0.5, "forgot")],
)
def test_the_verdict_follows_the_figures(fa: float, verdict: str) -> None:
    assert verdict in " ".join(headline(rows(result("foul", fa), result("retrain", 0.6))))


def test_a_method_that_is_worse_than_doing_nothing() -> None:
    told = headline(rows(result("none", 0.7), result("foul", 0.1), result("retrain", 0.6)))
    assert told[0].startswith("No method comes nearer to Retrain than the learned model itself")


def test_without_retrain_nobody_can_tell() -> None:
    found = rows(result("none", 0.9), result("foul", 0.5))
    assert headline(found) == [
        "With foul, accuracy on the data to be forgotten went from 90.0 % to 50.0 %. Without"
        " Retrain nobody can tell how far it should have gone."
    ]
    assert missing_retrain(found) == "foul unlearn run --forget domain:east --method retrain"


def test_a_seed_without_retrain_is_enough_to_say_so() -> None:
    whole = [result("foul", seed=0), result("retrain", seed=0)]
    assert missing_retrain(rows(*whole)) == ""
    assert missing_retrain(rows(*whole, result("foul", seed=1))) != ""
    assert "'domain:two words'" in missing_retrain(rows(result("foul", forget="domain:two words")))


def test_models_to_compare_with_are_no_method() -> None:
    assert "No unlearning method" in headline(rows(result("none"), result("retrain")))[0]


def test_nothing_measured_is_no_failure() -> None:
    assert "not measured" in headline(rows({"method": "foul"}))[0]
