"""The run folder: a run that explains itself.

config.toml                     the resolved configuration
run.json                        version, command, stage, clients
rounds.jsonl                    one line per round: accuracy, losses, who answered, costs
checkpoints/round-00012.safetensors
models/learned.safetensors      the model at the end of the learning stage
deltas/CLIENT.safetensors       with federation.keep_deltas: each client's last update of V and head
history.safetensors             with federation.history: what each group contributed, summed up
results.json                    figures of every unlearning method that ran
evaluation/METHOD-REQUEST.json  what was measured of its model: per client, attacks, probes
erased.json                     clients that were erased: nobody asks them again
erasure/                        requests to erase, their ledger and receipts
summary.json                    accuracy per domain, costs, disk
"""

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foul.config.load import config_to_toml, read_config_file
from foul.config.schema import Config
from foul.errors import UserError
from foul.federation.messages import ClientInfo, Tensors
from foul.models import part_of
from foul.runs.atomic import not_written, remove_leftovers, write_text
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.lock import alone
from foul.runs.results import read_json
from foul.version import __version__

FORMAT = 1
"""Raised when a newer foul could not read an older folder, or the other way round."""


class RunFolder:
    """One run on disk. Everything is written atomically; a kill at any moment loses one round."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.models = path / "models"
        self.deltas = path / "deltas"
        self.evaluation = path / "evaluation"
        self.history_file = path / "history.safetensors"
        self.results_file = path / "results.json"
        self.erased_file = path / "erased.json"

    @classmethod
    def create(cls, path: Path, config: Config, facts: dict[str, Any]) -> "RunFolder":
        """Start a new run folder.

        Raises:
            UserError: there is something at this path already.
            MachineError: the disk is full; nothing is left behind.
        """
        cls.require_free(path)
        folder, new = cls(path), not path.exists()
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
            folder.models.mkdir(exist_ok=True)
            write_text(path / "config.toml", config_to_toml(config))
            folder.write_facts({"format": FORMAT, "version": __version__, **facts})
        except BaseException as error:
            if new:
                shutil.rmtree(path, ignore_errors=True)
            if isinstance(error, OSError):
                raise UserError(
                    f"{path} cannot be created ({error.strerror})", "Choose another --out."
                ) from error
            raise
        return folder

    @staticmethod
    def require_free(path: Path) -> None:
        """Check that a run folder can be made here.

        Raises:
            UserError: there is something at this path already.
        """
        if path.exists() and not (path.is_dir() and all(map(_unfinished, path.iterdir()))):
            raise UserError(
                f"{path} exists already",
                "Continue it with --resume, or choose another --out.",
            )

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """An existing run folder.

        Raises:
            UserError: it is not a run folder, or of a version that this one cannot read.
        """
        facts = path / "run.json"
        if not facts.is_file():
            raise UserError(f"{path} is not a run folder (it has no run.json)", "Check the path.")
        folder = cls(path)
        found = folder.facts().get("format")
        if found != FORMAT:
            raise UserError(
                f"{path} has run format {found}, this foul {__version__} reads {FORMAT}",
                f"Use the foul that wrote it ({folder.facts().get('version', 'unknown')}).",
            )
        return folder

    def facts(self) -> dict[str, Any]:
        try:
            facts = json.loads((self.path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{self.path / 'run.json'} cannot be read ({error})") from error
        if not isinstance(facts, dict):
            raise UserError(f"{self.path / 'run.json'} does not hold a JSON object")
        return facts

    def require_same_data(self, facts: dict[str, Any]) -> None:
        """Check that classes and clients are those the run began with.

        Raises:
            UserError: naming what differs.
        """
        began, erased = self.facts(), self.erased()
        for key, now in facts.items():
            if _others(began.get(key), erased) != _others(now, erased):
                raise UserError(
                    f"The data of {self.path} has changed since it began ({key} differ)",
                    "Put the images back as they were, or start a new run in another folder "
                    "(--out; with `foul reproduce`, --runs).",
                )

    def clients(self) -> list[ClientInfo]:
        """The clients the run began with."""
        return [ClientInfo(**client) for client in self.facts().get("clients", [])]

    def write_facts(self, facts: dict[str, Any]) -> None:
        write_text(self.path / "run.json", json.dumps(facts, indent=2) + "\n")

    def config(self) -> Config:
        return read_config_file(self.path / "config.toml")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for this process alone.

        Raises:
            UserError: another process holds it.
            MachineError: the folder cannot be written.
        """
        busy = UserError(f"{self.path} is in use by another process", "Wait for it to end.")
        with alone(self.path / ".lock", busy):
            for folder in (
                self.path,
                self.checkpoints,
                self.models,
                self.deltas,
                self.evaluation,
            ):
                remove_leftovers(folder)
            yield

    def save_checkpoint(
        self, round: int, tensors: Tensors, state: dict[str, Any], keep: int
    ) -> None:
        """Write the checkpoint of a round, then remove all but the newest `keep`."""
        save_tensors(self._checkpoint(round), tensors, state)
        for old in self._rounds()[:-keep]:
            self._checkpoint(old).unlink()

    def last_checkpoint(self) -> tuple[Tensors, dict[str, Any]] | None:
        """The newest checkpoint, or nothing if none was written yet."""
        rounds = self._rounds()
        return load_tensors(self._checkpoint(rounds[-1])) if rounds else None

    def append(self, record: dict[str, Any]) -> None:
        """Add a line to rounds.jsonl.

        Raises:
            MachineError: the disk is full; what is there of the line is no record.
        """
        path = self.path / "rounds.jsonl"
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise not_written(path, error) from error

    def records(self) -> list[dict[str, Any]]:
        """The rounds so far; a line cut off by a kill is not one."""
        path = self.path / "rounds.jsonl"
        records = []
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    records.append(json.loads(line))
                except ValueError:
                    break
        return records

    def rewind(self, round: int) -> None:
        """Forget the records after this round: they will be made again."""
        kept = [record for record in self.records() if record["round"] <= round]
        write_text(self.path / "rounds.jsonl", "".join(json.dumps(r) + "\n" for r in kept))

    def save_model(self, name: str, tensors: Tensors, state: dict[str, Any]) -> Path:
        path = self.models / f"{name}.safetensors"
        save_tensors(path, tensors, state)
        return path

    def load_model(self, name: str = "learned") -> tuple[Tensors, dict[str, Any]]:
        """A finished model.

        Raises:
            UserError: the run has no such model (yet).
        """
        path = self.models / f"{name}.safetensors"
        if not path.is_file():
            have = sorted(file.stem for file in self.models.glob("*.safetensors"))
            raise UserError(
                f"{self.path} has no model '{name}' (it has: {', '.join(have) or 'none'})",
                "A run that is still learning gets its model with --resume.",
            )
        return load_tensors(path)

    def save_evaluation(self, name: str, measured: dict[str, Any]) -> None:
        """Keep what was measured of a model; what was known of the same model stays."""
        known = self.load_evaluation(name)
        if known.get("identity") != measured["identity"]:
            known = {}
        self.evaluation.mkdir(exist_ok=True)
        write_text(self._measured(name), json.dumps(known | measured, indent=1) + "\n")

    def load_evaluation(self, name: str) -> dict[str, Any]:
        """What was measured of a model; empty if nothing was.

        Raises:
            UserError: the file is damaged.
        """
        path = self._measured(name)
        if not path.is_file():
            return {}
        measured = read_json(path)
        return measured if isinstance(measured, dict) else {}

    def _measured(self, name: str) -> Path:
        return self.evaluation / f"{name}.json"

    def save_delta(self, client: str, delta: Tensors) -> None:
        """Keep a client's last update of what FOUL can change."""
        kept = {name: t for name, t in delta.items() if part_of(name) in ("V", "head")}
        self.deltas.mkdir(exist_ok=True)
        save_tensors(self.deltas / f"{client}.safetensors", kept, {"client": client})

    def load_delta(self, client: str) -> Tensors | None:
        """What `save_delta` kept of a client, if anything."""
        path = self.deltas / f"{client}.safetensors"
        return load_tensors(path)[0] if path.is_file() else None

    def save_history(self, tensors: Tensors, numbers: dict[str, Any]) -> None:
        """Keep what groups of clients contributed to learning."""
        save_tensors(self.history_file, tensors, numbers)

    def load_history(self) -> tuple[Tensors, dict[str, Any]] | None:
        """What `save_history` kept, if anything."""
        return load_tensors(self.history_file) if self.history_file.is_file() else None

    def erased(self) -> frozenset[str]:
        """The clients that were erased from this run and not readmitted.

        Raises:
            UserError: the file is damaged.
        """
        if not self.erased_file.is_file():
            return frozenset()
        listed = read_json(self.erased_file)
        if not isinstance(listed, list):
            raise UserError(f"{self.erased_file} does not hold a list of clients")
        return frozenset(listed)

    def write_erased(self, clients: Iterable[str]) -> None:
        write_text(self.erased_file, json.dumps(sorted(clients)) + "\n")

    def learned(self) -> bool:
        """Whether the learning stage has ended: its summary and its model are there."""
        return bool(self.summary()) and (self.models / "learned.safetensors").is_file()

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_text(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")

    def summary(self) -> dict[str, Any]:
        path = self.path / "summary.json"
        return read_json(path) if path.is_file() else {}

    def disk_bytes(self) -> int:
        """Bytes of all files of this run."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def _checkpoint(self, round: int) -> Path:
        return self.checkpoints / f"round-{round:05d}.safetensors"

    def _rounds(self) -> list[int]:
        return sorted(
            int(file.stem.removeprefix("round-"))
            for file in self.checkpoints.glob("round-*.safetensors")
        )


def _others(fact: Any, erased: Collection[str]) -> Any:
    """A fact about the data; of a list of clients, those that were not erased."""
    if not erased or not isinstance(fact, list):
        return fact
    return [item for item in fact if not (isinstance(item, dict) and item.get("id") in erased)]


def _unfinished(entry: Path) -> bool:
    """Whether this is what `create` leaves when it is killed before it writes run.json."""
    return entry.name in {"checkpoints", "models", "config.toml"} or entry.match(".*.tmp")
