from typing import Any

from foul.federation.messages import ClientInfo
from foul.unlearning import ForgetRequest
from foul.unlearning.foul.counts import Counts
from foul.unlearning.foul.evidence import Evidence


def counts(samples: int, correct: int) -> dict[str, int]:
    return {"samples": samples, "correct": correct}


def test_evidence_weighs_samples() -> None:
    scores: dict[str, Any] = {
        "a": {"train": counts(10, 9), "validation": counts(0, 0)},
        "b": {"train": counts(30, 3), "validation": counts(2, 1)},
        "c": {"train": counts(4, 4), "validation": counts(1, 0)},
    }
    request = ForgetRequest.parse("client:c", [ClientInfo(name, "d", {}) for name in "abc"])
    assert Evidence(scores, request).to_dict() == {
        "forget_train": 1.0,
        "forget_validation": 0.0,
        "retain_train": 0.3,
        "retain_validation": 0.5,
    }


def test_what_nobody_told_of_is_left_out() -> None:
    scores: dict[str, Any] = {
        "a": {"validation": counts(0, 0)},
        "b": {"validation": counts(5, 4)},
        "c": {"train": counts(4, 1)},
    }
    request = ForgetRequest.parse("client:c", [ClientInfo(name, "d", {}) for name in "abc"])
    evidence = Evidence(scores, request)
    assert evidence.to_dict() == {"forget_train": 0.25, "retain_validation": 0.8}
    assert evidence.accuracy("forget", "validation") is None


def test_a_domains_held_out_samples_are_pooled_over_all_its_clients() -> None:
    clients = [ClientInfo(f"{d}-{n}", d, {}) for d in ("east", "west") for n in range(2)]
    scores: dict[str, Any] = {
        "east-0": {"train": counts(10, 10), "validation": counts(8, 6)},
        "east-1": {"train": counts(10, 10), "validation": counts(2, 0)},
        "west-0": {"validation": counts(3, 3)},
        "west-1": {"validation": counts(0, 0)},
    }
    request = ForgetRequest.parse("client:east-0", clients)
    evidence = Evidence(scores, request)
    assert evidence.held_out() == {"east": Counts(6, 10), "west": Counts(3, 3)}
    without = Evidence({"west-1": scores["west-1"]}, request)
    assert without.held_out() == {"east": Counts(), "west": Counts()}
