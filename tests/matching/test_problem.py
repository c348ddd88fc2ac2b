from typing import Any

import pytest

from foul.matching import MatchingOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kappa", -0.1),
        ("kappa", float("nan")),
        ("kappa", float("inf")),
        ("beta", 0.0),
        ("beta", float("inf")),
        ("simplex", "both"),
        ("radius", "kappa^2"),
        ("radius_of", "norm"),
        ("forget", "ascend"),
        ("anchor", "forget"),
        ("normalise", "unit"),
    ],
)
def test_bad_option_is_named_with_its_value_and_a_remedy(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} is .*: use ") as error:
        MatchingOptions(**{name: value})
    assert str(value) in str(error.value)


def test_sign_of_forget_deltas() -> None:
    assert MatchingOptions(beta=2.0).sign == -2.0
    assert MatchingOptions(beta=2.0, forget="bounded").sign == 2.0
