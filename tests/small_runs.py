"""Runs of a second: four clients of two synthetic domains and a tiny network, in one process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foul import Config, Observer, RunFolder, learn, load_config
from foul.data import ClientData, build_clients
from foul.federation import build
from foul.federation.messages import Tensors

SMALL: dict[str, Any] = {
    "data.name": "synthetic",
    "data.image_size": 16,
    "data.domains": ["north", "east"],
    "clients.per_domain": 2,
    "model.backbone": "tiny",
    "model.split": 1,
    "model.k_channels": 4,
    "model.v_channels": 4,
    "model.decoder_channels": 8,
    "learning.rounds": 3,
    "learning.batch_size": 16,
    "workers": 1,
    "threads": 1,
}


def small_config(**changes: object) -> Config:
    """The small setting; `learning__rounds=5` changes the key learning.rounds."""
    return load_config(None, SMALL | {k.replace("__", "."): v for k, v in changes.items()})


class StopAfter(Observer):
    """Stops a run when a round is complete, as a crash would."""

    def __init__(self, round: int) -> None:
        self._round = round

    def on_round(self, record: dict[str, Any]) -> None:
        if record["round"] == self._round:
            raise Crash


class Crash(Exception):
    """What `StopAfter` raises."""


def learned(config: Config, out: Path) -> Tensors:
    """The weights at the end of a run that nobody disturbed."""
    return learn(config, out).load_model()[0]


def running(pid: int) -> bool:
    """Whether this process exists and is not a zombie."""
    try:
        # The name in parentheses may contain spaces; the state follows it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def without_times(folder: RunFolder) -> list[dict[str, Any]]:
    """The records of a run, without how long things took."""
    records = folder.records()
    for record in records:
        del record["seconds"]
        for cost in record["costs"].values():
            del cost["seconds"]
    return records


def forgetting_untested(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    """From now on, the clients of this domain have no test samples."""
    made = build_clients

    def without(*arguments: Any, **values: Any) -> tuple[ClientData, ...]:
        return tuple(
            replace(client, test=client.test.subset([])) if client.domain == domain else client
            for client in made(*arguments, **values)
        )

    monkeypatch.setattr(build, "build_clients", without)
    # Fewer samples are other data, which a run would refuse.
    monkeypatch.setattr(RunFolder, "require_same_data", lambda *_: None)
