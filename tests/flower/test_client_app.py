import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from flwr.app import Context, Message, RecordDict, UserConfig

from flower.running_nodes import parcel_of, running_node
from foul.data import ClientData
from foul.federation.messages import Request
from foul.flower.client_app import app, ask
from foul.flower.node import listen
from foul.flower.parcel import Parcel
from foul.flower.wire import from_records, to_records

WHO = parcel_of(Request("", "who", 0, {}, {}))


@pytest.fixture
def short_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foul-") as folder:
        yield Path(folder)


def error_of(parcel: Parcel) -> str:
    return str(json.loads(parcel.header)["error"])


def test_it_loads_without_torch() -> None:
    code = "import sys, foul.flower.client_app; print({'torch', 'pydantic'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


def test_a_message_is_answered_by_the_nodes_worker(tiny_clients: tuple[ClientData, ...]) -> None:
    client = tiny_clients[0]
    with running_node(client) as path:
        config: UserConfig = {"client-id": client.id, "worker-socket": str(path)}
        message = Message(to_records(WHO), 1, "query")
        reply = app(message, Context(1, 1, config, RecordDict(), {}))
    assert json.loads(from_records(reply.content).header)["client"] == client.id


def test_a_worker_that_does_not_run_is_an_answer(short_path: Path) -> None:
    assert "does not run" in error_of(ask("a", str(short_path / "none.sock"), WHO))
    listen(short_path / "left.sock").close()
    assert "does not run" in error_of(ask("a", str(short_path / "left.sock"), WHO))


def test_a_worker_that_does_not_answer_is_an_answer(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.flower.client_app.PATIENCE", 0.0)
    parcel = parcel_of(Request("a", "learn", 1, {}, {}), deadline=0.1)
    with listen(short_path / "deaf.sock"):
        assert "does not answer" in error_of(ask("a", str(short_path / "deaf.sock"), parcel))


def test_a_supernode_without_its_settings_says_so() -> None:
    assert "--node-config" in error_of(ask("", "", WHO))


def test_a_message_without_a_deadline_is_refused(short_path: Path) -> None:
    assert "no deadline" in error_of(ask("a", str(short_path / "x.sock"), Parcel(b"", b"", b"[]")))
