import pytest

from foul.errors import UserError
from foul.unlearning.requirements import Requirements, check

OTHERS = ["none", "retrain"]


@pytest.mark.parametrize(("objective", "head"), [("supervised", "joint"), ("l2u", "causal")])
def test_a_model_of_another_kind_is_refused_with_what_works(objective: str, head: str) -> None:
    check("retrain", Requirements(), objective, head, OTHERS)
    with pytest.raises(UserError, match="Methods that work on this model: none, retrain") as caught:
        check("foul", Requirements(l2u=True), objective, head, OTHERS)
    assert "'foul'" in str(caught.value)


def test_an_l2u_model_with_the_joint_head_is_what_is_needed() -> None:
    check("foul", Requirements(l2u=True), "l2u", "joint", OTHERS)


def test_requirements_are_data() -> None:
    assert Requirements(l2u=True).to_dict() == {
        "forget_online": False,
        "individual_updates": False,
        "stored_deltas": False,
        "history": False,
        "own_learning": False,
        "l2u": True,
    }
