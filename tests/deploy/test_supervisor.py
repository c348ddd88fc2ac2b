"""The supervisor keeps processes alive, takes over after a crash, and leaves nothing behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foul.deploy.certificates import make_authority
from foul.deploy.control import Control
from foul.deploy.federation import RunningFederation
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan, Process
from foul.deploy.ports import free_ports
from foul.deploy.processes import gone, marked
from foul.deploy.supervisor import Note, launch, read_notes
from foul.errors import MachineError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SLEEP = ("sleep", "1000")
CHILD = ("sh", "-c", "sleep 1000 & echo child; wait")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., RunningFederation]]:
    """Makes a folder with these processes and starts its supervisor."""
    made = []

    def build(*processes: Process) -> RunningFederation:
        folder = FederationFolder.at(tmp_path / "fed")
        folder.create()
        plan = Plan((), "127.0.0.1:1", processes)
        plan.write(folder.plan)
        federation = RunningFederation(folder, plan)
        made.append(federation)
        supervise(federation)
        return federation

    yield build
    for federation in made:
        federation.stop()
        assert marked(str(federation.folder.path)) == []


def supervise(federation: RunningFederation) -> None:
    assert launch(federation.folder)
    wait_for(lambda: federation.supervised)


def wait_for(condition: Callable[[], object], within: float = 20) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.02)


def test_a_killed_process_is_started_again_with_all_below_it_gone(
    make: Callable[..., RunningFederation],
) -> None:
    federation = make(Process("a", CHILD), Process("b", SLEEP))
    wait_for(lambda: federation.log("a") == "child\n" and federation.pid("b"))
    mark = str(federation.folder.path)
    wait_for(lambda: len(marked(mark)) == 4)
    before = set(marked(mark))
    old = federation.kill("a")
    wait_for(lambda: federation.pid("a") not in (0, old))
    wait_for(lambda: federation.log("a") == "child\nchild\n")
    # Supervisor and b are as before, and a with its child are new.
    assert len(before & set(marked(mark))) == 2
    assert federation.notes()["a"].restarts == 1
    assert federation.notes()["a"].exit_code == -signal.SIGKILL
    assert federation.notes()["b"].restarts == 0


def test_a_killed_supervisor_is_replaced_by_one_that_takes_over(
    make: Callable[..., RunningFederation],
) -> None:
    federation = make(Process("a", SLEEP), Process("b", SLEEP))
    wait_for(lambda: federation.pid("a") and federation.pid("b"))
    kept, lost = federation.pid("a"), federation.pid("b")
    supervisor = federation.kill("supervisor")
    assert gone([supervisor], 60)
    assert not federation.supervised
    federation.kill("b")
    assert gone([lost], 60)
    supervise(federation)
    wait_for(lambda: federation.pid("b"))
    assert federation.pid("a") == kept
    assert federation.pid("b") != lost


def test_a_second_supervisor_ends_at_once(make: Callable[..., RunningFederation]) -> None:
    federation = make(Process("a", SLEEP))
    first = federation.pid("supervisor")
    assert not launch(federation.folder)
    assert federation.pid("supervisor") == first
    assert "another supervisor" in federation.log("supervisor")


def test_stopping_works_without_a_supervisor(make: Callable[..., RunningFederation]) -> None:
    federation = make(Process("a", CHILD))
    wait_for(lambda: federation.log("a") == "child\n")
    assert gone([federation.kill("supervisor")], 60)
    assert marked(str(federation.folder.path))
    federation.stop()
    assert marked(str(federation.folder.path)) == []
    assert not federation.folder.state.exists()


def test_what_is_held_or_waits_is_not_started(
    make: Callable[..., RunningFederation], tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    federation = make(Process("a", SLEEP), Process("b", SLEEP, waits_for=str(sign)))
    wait_for(lambda: federation.pid("a"))
    assert federation.pid("b") == 0
    sign.touch()
    wait_for(lambda: federation.pid("b"))
    federation.hold("a")
    federation.kill("a")
    time.sleep(1.5)
    assert federation.pid("a") == 0
    federation.release("a")
    wait_for(lambda: federation.pid("a"))


def test_a_server_whose_proxy_cannot_listen_is_not_up(
    make: Callable[..., RunningFederation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Control, "healthy", lambda self: True)
    monkeypatch.setattr(Control, "nodes", lambda self: [])
    (port,) = free_ports(1)
    taken = ("sh", "-c", "echo the port is taken; exit 1")
    federation = make(Process("superlink", SLEEP, port=1), Process("proxy", taken, port=port))
    make_authority(federation.folder.certificates)
    with pytest.raises(MachineError, match=r"(?s)proxy ended \d times.*the port is taken"):
        federation.start(lambda text: None, 60)
    # Another program's door is not ours to wait for.
    federation.hold("proxy")
    federation.start(lambda text: None, 60)


def test_a_number_given_to_another_process_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"a": {"pid": 1, "started": 12345678901}}')
    assert not read_notes(tmp_path / "state.json")["a"].alive
    assert read_notes(tmp_path / "none.json") == {}
    assert not Note().alive


def test_in_the_foreground_it_stops_all_when_it_is_told_to(
    make: Callable[..., RunningFederation],
) -> None:
    """As systemd runs it."""
    federation = make(Process("a", CHILD))
    federation.stop()
    command = [sys.executable, "-m", "foul.deploy.supervisor", "--foreground"]
    with subprocess.Popen(
        [*command, str(federation.folder.path)], stdout=subprocess.DEVNULL
    ) as supervisor:
        wait_for(lambda: federation.pid("a"))
        assert federation.pid("supervisor") == supervisor.pid
        supervisor.terminate()
        assert supervisor.wait(30) == 0
    assert marked(str(federation.folder.path)) == []
    assert not federation.folder.state.exists()
