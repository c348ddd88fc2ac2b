from flwr.supercore.task_identity import TaskIdentity

from foul.flower.connect import serving
from foul.flower.own_run import own_run

from .fake_grid import FakeGrid


def test_only_inside_a_server_app_there_is_a_run() -> None:
    TaskIdentity.run_id = 2**64 - 3
    assert own_run() is None
    with serving(FakeGrid([])):  # type: ignore[arg-type]
        assert own_run() == 2**64 - 3
    assert own_run() is None
