import pytest

from foul.unlearning.methods import METHODS

from .conftest import Foul


@pytest.mark.parametrize("name", list(METHODS))
def test_one_method_with_all_its_options(foul: Foul, name: str) -> None:
    outcome = foul("methods", name)
    assert outcome.code == 0
    assert "Needs: " in outcome.out
    assert ":math:" not in outcome.out
    facts = foul("methods", name, "--json").json[name]
    fields = type(METHODS[name].options).model_fields
    assert facts["options"].keys() == facts["meanings"].keys() == fields.keys()
    for option, meaning in facts["meanings"].items():
        assert option in outcome.out
        assert meaning
    assert facts["reference"]


def test_a_misspelt_one(foul: Foul) -> None:
    assert "Did you mean 'fedosd'?" in foul("methods", "fedsod").error()
