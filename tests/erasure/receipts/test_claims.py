import pytest

from foul.erasure.receipts import MethodUsed
from foul.erasure.receipts.claims import (
    COPIES,
    FOUL_PARTS,
    NO_GUARANTEE,
    OLD_MODEL,
    ONE_RETRAINING,
    SIGNATURE,
    THIS_MODEL,
    not_claimed,
)
from foul.report.wording import FROZEN_PARTS, MEASURED_ONLY

from .statements import erasure, withdrawal


def of_method(name: str) -> list[str]:
    return not_claimed(erasure(method=MethodUsed(name, "0.1.0", {}, 1)))


def test_foul_says_that_e_and_k_saw_the_data() -> None:
    assert {FOUL_PARTS, FROZEN_PARTS, MEASURED_ONLY, NO_GUARANTEE} <= set(of_method("foul"))
    assert FOUL_PARTS in of_method("foul-paper")


def test_other_methods_do_not_speak_of_fouls_parts() -> None:
    assert FOUL_PARTS not in of_method("fedosd")
    assert FROZEN_PARTS in of_method("fedosd")


@pytest.mark.parametrize("name", ["retrain", "retrain-again"])
def test_retraining_leaves_no_frozen_parts(name: str) -> None:
    claims = of_method(name)
    assert FROZEN_PARTS not in claims
    assert MEASURED_ONLY in claims


def test_a_verification_speaks_of_its_model_and_of_one_retraining() -> None:
    alone = not_claimed(erasure(kind="verification"))
    assert {MEASURED_ONLY, NO_GUARANTEE, FOUL_PARTS, THIS_MODEL} <= set(alone)
    assert ONE_RETRAINING not in alone
    beside = not_claimed(erasure(kind="verification", retrain_costs={"rounds": 12}))
    assert set(beside) - set(alone) == {ONE_RETRAINING}
    # Nothing was removed that day.
    assert COPIES not in beside


def test_where_nothing_was_erased_that_is_said() -> None:
    for told in (withdrawal(), erasure(kind="failure")):
        assert not_claimed(told) == ["Nothing was erased.", OLD_MODEL, SIGNATURE]
