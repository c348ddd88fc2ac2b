import pytest
from small_runs import small_config

from flower.fake_grid import FakeGrid
from foul import UserError
from foul.federation.build import build
from foul.flower.connect import is_serving, serving


def test_outside_a_server_app_there_is_nobody_to_ask() -> None:
    assert not is_serving()
    with pytest.raises(UserError, match=r"inside a Flower ServerApp.*foul learn"):
        build(small_config(engine="flower"))


def test_within_a_server_app_its_grid_is_asked() -> None:
    with serving(FakeGrid([])):  # type: ignore[arg-type]
        assert is_serving()
        with pytest.raises(UserError, match="0 clients are connected"):
            build(small_config(engine="flower", flower__wait=0))
    assert not is_serving()
