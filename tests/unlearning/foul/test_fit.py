import math

import pytest

from foul.federation.messages import ClientInfo
from foul.unlearning.foul.fit import fit_of, retain_mean
from foul.unlearning.foul.options import Fit, FoulOptions
from foul.unlearning.method import LearnedScores
from foul.unlearning.request import ForgetRequest

CLIENTS = tuple(
    ClientInfo(name, domain, {"train": samples})
    for name, domain, samples in (("a", "north", 10), ("b", "north", 30), ("c", "east", 99))
)
REQUEST = ForgetRequest.parse("client:c", CLIENTS)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"a": 1.0, "b": 0.2, "c": 9.0}, 0.4),
        ({"b": 0.2}, 0.2),
        ({"a": math.nan, "b": 0.2}, 0.2),
        # Nobody told, or only those who are forgotten.
        ({}, None),
        ({"c": 9.0}, None),
        # What nobody can lose counts as what one can.
        ({"a": 1e9, "b": 0.2}, (10 * math.log(4) + 6) / 40),
        ({"a": -1e9, "b": 0.2}, 0.15),
    ],
)
def test_it_is_the_retain_clients_mean_over_samples(
    told: dict[str, float], expected: float | None
) -> None:
    assert retain_mean(told, REQUEST, 0.0, math.log(4)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("losses", "gaps", "expected"),
    [
        ({"a": 0.4, "b": 0.4}, {"a": 0.5, "b": 0.5}, "unfit"),
        ({"a": 0.1, "b": 0.1}, {"a": 0.5, "b": 0.2}, "overfit"),
        ({"a": 0.1, "b": 0.1}, {"a": 0.5, "b": 0.0}, "fitted"),
        ({"a": 0.1, "b": 0.1}, {}, "fitted"),
        ({"a": 0.01, "b": 0.01}, {"a": 0.5, "b": 0.5}, "sure"),
        # Nobody told.
        ({}, {"a": 0.5, "b": 0.5}, "fitted"),
        # One client alone cannot say it for all.
        ({"a": 1e9, "b": 0.0}, {}, "fitted"),
        ({"a": 0.1, "b": 0.1}, {"a": 1e9, "b": -0.1}, "fitted"),
    ],
)
def test_what_retain_clients_told_of_the_learned_model_says_how_well_it_fits(
    losses: dict[str, float], gaps: dict[str, float], expected: Fit
) -> None:
    scores = LearnedScores({**losses, "c": 9.0}, {**gaps, "c": 1.0})
    assert fit_of(FoulOptions(), scores, REQUEST, classes=4) == expected
