import pytest
from small_runs import small_config

from flower.fake_grid import FakeGrid
from foul import UserError
from foul.federation.build import build
from foul.flower import connect
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


@pytest.mark.parametrize("missing", ["flwr", "ray"])
def test_a_simulation_without_its_packages_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(connect, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(UserError, match=rf"'{missing}' is not installed.*foul\[simulation\]"):
        build(small_config(engine="flower-sim"))
