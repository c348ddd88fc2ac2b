import pytest

from foul.errors import UserError
from foul.unlearning import Foul, FoulOptions, Retrain
from foul.unlearning.methods import METHODS, make_method


def test_every_method_has_a_name_an_idea_and_valid_options() -> None:
    for name, entry in METHODS.items():
        method = make_method(name)
        assert type(method) is entry.method
        assert method.options == entry.options
        assert entry.method.__doc__


def test_options_can_be_changed_one_by_one() -> None:
    method = make_method("foul-paper", ["kappa=2", "scope=[V, head]"])
    assert isinstance(method, Foul)
    assert method.options.kappa == 2
    assert method.options.scope == ("V", "head")
    # All others stay the paper's.
    assert method.options.forget == "negated"
    assert isinstance(make_method("retrain", ["rounds=3"]), Retrain)


def test_the_paper_and_the_print_differ_in_simplex_and_radius() -> None:
    one, other = (METHODS[name].options.model_dump() for name in ("foul-paper", "foul-printed"))
    assert {key for key in one if one[key] != other[key]} == {"simplex", "radius"}
    assert set(one) == set(FoulOptions.model_fields)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("fuol", [], "There is no method 'fuol'.*Did you mean 'foul'"),
        ("foul", ["kapa=1"], "Unknown option 'kapa'.*Did you mean 'kappa'"),
        ("foul", ["kappa=-1"], "kappa=-1: .*greater than or equal to 0"),
        ("foul", ["kappa"], "'kappa' is not key=value"),
        ("foul", ["precision=int4"], "precision='int4'"),
        # The outputs of E and K are computed once: they cannot be trained.
        ("foul", ["scope=[K, V]"], "scope.0='K'"),
        ("foul", ["scope=[]"], "scope=.*at least 1"),
        ("none", ["rounds=1"], "Unknown option 'rounds'"),
    ],
)
def test_what_cannot_be_made_is_said(name: str, overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=rf"(?s){message}"):
        make_method(name, overrides)


def test_no_two_methods_have_the_same_idea() -> None:
    ideas = [entry.idea for entry in METHODS.values()]
    assert all(ideas)
    assert len(set(ideas)) == len(ideas)
