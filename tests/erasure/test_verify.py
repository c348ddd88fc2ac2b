import pytest

from foul import UserError
from foul.erasure.audit import audit
from foul.erasure.readmission import readmit
from foul.erasure.requests import file_request
from foul.erasure.store import Store
from foul.erasure.verify import verify

from .conftest import LENIENT


def test_the_evidence_can_be_measured_again(served: Store) -> None:
    told = verify(served, 1)
    job = served.state().jobs[1]
    assert told["after"] == job.evidence["1"]["after"]
    assert told["before"] == job.evidence["1"]["before"]
    assert (told["passed"], told["known"], told["version"]) == (True, True, 1)
    assert served.folder.erased() == {"north-1"}
    assert served.entries()[-1].kind == "verified"


def test_beside_retrain_and_nothing_of_it_stays(served: Store) -> None:
    told = verify(served, 1, with_retrain=True)
    assert set(told["retrain"]) == set(told["after"])
    assert told["retrain"]["fa"] is not None
    assert [file.name for file in served.folder.models.iterdir()] == ["learned.safetensors"]
    assert all(finding.ok for finding in audit(served))


def test_a_stricter_policy_or_another_model_does_not_pass(served: Store) -> None:
    policy = served.path / "policy.toml"
    policy.write_text(LENIENT.replace("mia_auc_high = 1.0", "mia_auc_high = 0.5"))
    told = verify(served, 1)
    assert not told["passed"]
    assert [c["key"] for c in told["checks"] if not c["passed"]] == ["mia_high"]
    policy.write_text(LENIENT)
    tensors, facts = served.folder.load_model()
    name = next(name for name in tensors if name.startswith("head"))
    served.folder.save_model("learned", tensors | {name: tensors[name] + 1}, facts)
    told = verify(served, 1)
    assert (told["known"], told["passed"]) == (False, False)


def test_what_cannot_be_verified(served: Store) -> None:
    file_request(served, "client:east-0")
    with pytest.raises(UserError, match="R-0002 is received: there is nothing to verify"):
        verify(served, 2)
    readmit(served, "north-1", "new contract")
    with pytest.raises(UserError, match="north-1 was readmitted since"):
        verify(served, 1)
