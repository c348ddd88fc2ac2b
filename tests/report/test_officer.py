from typing import Any

import pytest

from foul.report.officer import Account, account

from .reported import CLIENTS, REQUEST, THREE, evaluation, result, rows

FACTS = {
    "clients": [
        {"id": name, "domain": domain, "samples": {"train": 30}} for name, domain in CLIENTS.items()
    ]
}
EAST = frozenset({"east-0", "east-1"})


def told(*results: dict[str, Any], **more: Any) -> Account:
    return account(REQUEST, rows(*results, **more), EAST, FACTS)


def number(found: Account, what: str) -> str:
    return next(finding.numbers for finding in found.findings if what in finding.what)


def meaning(found: Account, what: str) -> str:
    return next(finding.meaning for finding in found.findings if what in finding.what)


def test_what_was_asked_and_done() -> None:
    found = told(*THREE)
    assert found.asked == (
        "That the model forget the training data of source “east”: 2 participants of 4,"
        " 60 training samples."
    )
    assert "with the method foul." in found.done
    assert found.done.endswith("How it ended: all rounds done.")
    one = account("client:east-0", rows(*THREE), frozenset({"east-0"}), FACTS)
    assert "participant “east-0”: 1 participant of 4, 30 training samples" in one.asked


def test_each_measurement_has_its_number_and_what_it_means() -> None:
    found = told(*THREE)
    assert number(found, "erased data") == (
        "50.0 % now; 90.0 % before; 60.0 % if retrained without the data"
    )
    assert "10.0 points below such a model" in meaning(found, "right on the erased data")
    assert "cost no accuracy" in meaning(found, "right on new data")
    assert number(found, "attacker tells").startswith("0.500 now; 0.500 before")
    assert number(found, "cost") == "25 % of the traffic and 25 % of the computation"


@pytest.mark.parametrize(
    ("fa", "verdict"), [(0.6, "within one point"), (0.8, "20.0 points above such a model")]
)
def test_the_verdict_follows_the_figures(fa: float, verdict: str) -> None:
    assert verdict in meaning(told(result("foul", fa), result("retrain", 0.6)), "erased data")


def test_lost_usefulness_is_told() -> None:
    found = told(result("none", ta=0.9), result("foul", ta=0.85))
    assert "Erasure cost 5.0 points" in meaning(found, "new data")


@pytest.mark.parametrize(
    ("low", "verdict"), [(0.45, "could not be told from guessing"), (0.51, "still differs")]
)
def test_the_attacks_uncertainty_decides(low: float, verdict: str) -> None:
    attacked = result("foul", mia_auc=0.55, mia_low=low, mia_high=0.6)
    assert verdict in meaning(told(attacked), "attacker tells")


def test_what_was_evaluated_is_told() -> None:
    evaluations = {"foul": evaluation(0.5), "retrain": evaluation(0.6)}
    found = told(result("foul"), result("retrain", 0.6), evaluations=evaluations)
    assert number(found, "K still knows").startswith("90.0 % now; 90.0 % if retrained")
    assert "within one point of the retrained model" in meaning(found, "K still knows")
    assert number(found, "learned again") == "2 rounds now; 2 rounds if retrained without the data"
    assert number(found, "planted mark") == "37.5 % now; 37.5 % if retrained without the data"
    assert number(found, "wrongly accusing") == "2.0 % now; 2.0 % if retrained without the data"


def test_without_retrain_the_page_says_so() -> None:
    assert "nobody can tell" in meaning(told(result("foul")), "erased data")


def test_retraining_is_told_as_such() -> None:
    found = told(result("none"), result("retrain"))
    assert found.done.startswith("A new model was trained from the beginning")
    assert not [finding for finding in found.findings if "cost" in finding.what]
    assert told(result("none")).findings == []
