import math

import pytest

from foul.federation.messages import ClientInfo
from foul.unlearning.foul.fit import retain_loss
from foul.unlearning.request import ForgetRequest

CLIENTS = tuple(
    ClientInfo(name, domain, {"train": samples})
    for name, domain, samples in (("a", "north", 10), ("b", "north", 30), ("c", "east", 99))
)
REQUEST = ForgetRequest.parse("client:c", CLIENTS)


@pytest.mark.parametrize(
    ("losses", "expected"),
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
    losses: dict[str, float], expected: float | None
) -> None:
    assert retain_loss(losses, REQUEST, classes=4) == pytest.approx(expected)
