import os
from pathlib import Path

import pytest

from foul.errors import MachineError, UserError
from foul.runs.lock import alone

BUSY = UserError("It is taken", "Wait.")


def test_one_holds_it_at_a_time(tmp_path: Path) -> None:
    with alone(tmp_path / "lock", BUSY):
        with pytest.raises(UserError, match="It is taken"), alone(tmp_path / "lock", BUSY):
            pytest.fail("held twice")
        with alone(tmp_path / "another", BUSY):
            pass
    with alone(tmp_path / "lock", BUSY):
        pass


def test_it_ends_with_its_holder(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with alone(tmp_path / "lock", BUSY):
            os._exit(0)
    os.waitpid(child, 0)
    with alone(tmp_path / "lock", BUSY):
        pass


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="lock"), alone(tmp_path / "nowhere" / "lock", BUSY):
        pytest.fail("held nothing")
