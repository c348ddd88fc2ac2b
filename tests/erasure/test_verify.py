import pytest
from small_runs import Crash

from foul import UserError
from foul.erasure.audit import audit
from foul.erasure.readmission import readmit
from foul.erasure.receipts import check_receipt
from foul.erasure.requests import file_request, withdraw
from foul.erasure.run import run
from foul.erasure.store import Store
from foul.erasure.verify import verify

from .conftest import LENIENT, kinds, receipts
from .receipts.flips import flipped_bytes


def test_the_evidence_can_be_measured_again(served: Store) -> None:
    told = verify(served, 1)
    job = served.state().jobs[1]
    assert told["after"] == job.evidence["1"]["after"]
    assert told["before"] == job.evidence["1"]["before"]
    assert (told["passed"], told["known"], told["version"]) == (True, True, 1)
    assert served.folder.erased() == {"north-1"}
    assert kinds(served)[-2:] == ["verified", "issued"]


def test_beside_retrain_and_nothing_of_it_stays(served: Store) -> None:
    told = verify(served, 1, retrain=True)
    assert set(told["retrain"]) == set(told["after"])
    assert told["retrain"]["fa"] is not None
    # As many rounds as learning took.
    assert told["retrain_costs"]["rounds"] == 2
    assert [file.name for file in served.folder.models.iterdir()] == ["learned.safetensors"]
    assert all(finding.ok for finding in audit(served))


def test_a_stricter_policy_or_another_model_does_not_pass(served: Store) -> None:
    policy = served.path / "policy.toml"
    policy.write_text(LENIENT.replace("mia_auc_high = 1.0", "mia_auc_high = 0.5"))
    told = verify(served, 1)
    assert not told["passed"]
    assert [c["key"] for c in told["checks"] if not c["passed"]] == ["mia_high"]
    stated = receipts(served)[-1]
    assert "the policy is not met (upper end of the attack's AUC)" in stated["outcome"]
    assert [e["passed"] for e in stated["evidence"] if e["key"] == "check_mia_high"] == [False]
    policy.write_text(LENIENT)
    tensors, facts = served.folder.load_model()
    name = next(name for name in tensors if name.startswith("head"))
    served.folder.save_model("learned", tensors | {name: tensors[name] + 1}, facts)
    told = verify(served, 1)
    assert (told["known"], told["passed"]) == (False, False)
    stated = receipts(served)[-1]
    assert "not met (the ledger does not know this model)" in stated["outcome"]
    assert stated["models"]["in_service"] == told["hash"] != stated["models"]["after"]


def test_what_cannot_be_verified(served: Store) -> None:
    file_request(served, "client:east-0")
    with pytest.raises(UserError, match="R-0002 is received: there is nothing to verify"):
        verify(served, 2)
    withdraw(served, 2)
    with pytest.raises(UserError, match="R-0002 is withdrawn: nothing was erased"):
        verify(served, 2)
    readmit(served, "north-1", "new contract")
    with pytest.raises(UserError, match="north-1 was readmitted since"):
        verify(served, 1)


def test_its_receipt_tells_retrain_and_its_costs_beside_the_erasures(served: Store) -> None:
    told = verify(served, 1, retrain=True)
    first, second = receipts(served)
    assert (first["kind"], second["kind"], told["receipt"]) == ("erasure", "verification", 2)
    figures = {e["key"]: (e["value"], e["before"], e["retrain"]) for e in second["evidence"]}
    for key in ("fa", "ra", "ta", "mia_auc", "mia_accuracy"):
        assert figures[key] == (told["after"][key], told["before"][key], told["retrain"][key])
        assert figures[key][2] is not None
    assert second["costs"] == first["costs"]
    assert second["retrain_costs"] == told["retrain_costs"]
    assert {"rounds", "bytes_down", "bytes_up", "flops_client"} <= set(told["retrain_costs"])
    assert second["outcome"].endswith("the policy is met.")
    assert second["method"] == first["method"]
    assert second["models"] == first["models"]


def test_a_changed_byte_in_it_is_found(served: Store) -> None:
    verify(served, 1)
    file = served.receipts / "receipt-000002.json"
    for page in (file, file.with_suffix(".html")):
        for place in flipped_bytes(page):
            # Every byte takes long; neighbours are alike.
            if place % 50 == 0:
                assert not check_receipt(file).ok, place
    assert check_receipt(served.receipts).ok


def test_a_second_verification_is_a_second_entry(served: Store) -> None:
    one, two = verify(served, 1), verify(served, 1)
    assert (one["receipt"], two["receipt"]) == (2, 3)
    events = [stated["event"] for stated in receipts(served)]
    assert events[1:] == ["verification:R-0001:V-1", "verification:R-0001:V-2"]
    assert served.state().requests[1].receipts == (1, 2, 3)
    assert kinds(served).count("verified") == 2


def test_a_receipt_that_a_kill_prevented_is_given_later(
    served: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("foul.erasure.verify.issue_missing", crash)
        with pytest.raises(Crash):
            verify(served, 1)
    assert len(receipts(served)) == 1
    run(served)
    assert [stated["kind"] for stated in receipts(served)] == ["erasure", "verification"]
    run(served)
    assert len(receipts(served)) == 2


def test_without_the_key_nothing_is_measured(served: Store) -> None:
    (served.path / "keys" / "current.pem").unlink()
    before = kinds(served)
    with pytest.raises(UserError, match="key"):
        verify(served, 1)
    assert kinds(served) == before
