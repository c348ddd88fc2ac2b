"""Cases: a federation of eight clients, a "learned" network and a request."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from factories import MakeNet
from forget_cases import MakeCase, make_case

from foul.data import ClientData
from foul.unlearning import Case


@pytest.fixture
def case_for(make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path) -> MakeCase:
    """Makes cases that share nothing; keywords are those of `make_case`."""
    numbers = itertools.count()

    def make(
        forget: str = "domain:east", clients: Sequence[ClientData] = tiny_clients, **values: Any
    ) -> Case:
        store = tmp_path / f"features-{next(numbers)}"
        return make_case(make_net, clients, store, forget, **values)

    return make
