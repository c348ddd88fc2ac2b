"""The federation store: the folder `erasure/` in a run that has learned.

ledger.sqlite     what happened: requests, jobs, model versions, readmissions (`ledger.py`)
policy.toml       what the operator accepts, if it is not the default (`policy.py`)
receipts/, keys/  signed receipts (`receipts/`)
kept/             models that the policy keeps after they were replaced
purge-JOB.json    while a purge is under way: what it has to remove

The model in service is always RUN/models/learned.safetensors: whatever reads a run reads that one,
and a model that replaces it does so in one rename.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foul.erasure.basis import measured_basis
from foul.erasure.fingerprint import fingerprint
from foul.erasure.fold import fold
from foul.erasure.ledger import Body, Entry, Ledger
from foul.erasure.participation import participation
from foul.erasure.state import State
from foul.errors import UserError
from foul.runs.atomic import not_written, remove_leftovers
from foul.runs.folder import RunFolder
from foul.runs.lock import alone


class Store:
    """Requests, jobs and versions of one federation."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.path = folder.path / "erasure"
        self.receipts = self.path / "receipts"
        self.kept = self.path / "kept"
        self.ledger = Ledger(self.path / "ledger.sqlite")

    @classmethod
    def open(cls, run: Path) -> "Store":
        """The store of a run; made if there is none yet.

        Raises:
            UserError: no run that has learned, or its ledger cannot be used.
            MachineError: the disk is full.
        """
        store = cls(RunFolder.open(run))
        if not store.ledger.file.is_file():
            store._adopt()
        return store

    @classmethod
    def read(cls, run: Path) -> "Store":
        """The store of a run, to look at: nothing is made.

        Raises:
            UserError: there is none.
        """
        store = cls(RunFolder.open(run))
        if not store.ledger.file.is_file():
            store._refuse_lost_ledger()
            raise UserError(
                f"{run} has no erasure ledger yet",
                f"It is made with the first request: foul erase request {run} --client ID",
            )
        return store

    def entries(self) -> list[Entry]:
        return self.ledger.entries()

    def state(self) -> State:
        """What is known now; reads beside a writer."""
        return fold(self.entries())

    def append(self, kind: str, body: Body) -> Entry:
        """Note that something happened."""
        return self.ledger.append(lambda _: (kind, body))

    def decide(self, kind: str, decide: Callable[[State], Body]) -> Entry:
        """Note what `decide` makes of the state; nobody else writes in between."""
        return self.ledger.append(lambda entries: (kind, decide(fold(entries))))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Be the one process that changes models; requests can be filed meanwhile.

        Raises:
            UserError: another process is.
        """
        busy = UserError(
            f"Another process is serving erasures of {self.folder.path}",
            "Wait for it to end; requests can be filed meanwhile.",
        )
        with alone(self.path / ".serving", busy):
            remove_leftovers(self.path)
            yield

    def service_hash(self) -> str:
        """The hash of the model that is in service."""
        return fingerprint(self.folder.load_model("learned")[0])

    def require_known_model(self) -> None:
        """Refuse to build on a model that the ledger knows nothing of.

        Raises:
            UserError: the model in service is not the newest version.
        """
        current = self.state().current
        if self.service_hash() != current.hash:
            raise UserError(
                f"The model in service of {self.folder.path} is not version {current.number} "
                f"({current.hash[:12]}) of the ledger",
                "If `foul erase relearn` was killed, repeat it as it was; else put that model back "
                "from a backup.",
            )

    def sync(self) -> State:
        """Bring erased.json and run.json in line with the ledger, which leads."""
        state = self.state()
        if self.folder.erased() != state.erased.keys():
            self.folder.write_erased(state.erased)
        facts = self.folder.facts()
        clients = [
            {"id": client.id, "domain": client.domain, "samples": client.samples}
            for client in state.active
        ]
        if facts.get("clients") != clients:
            self.folder.write_facts(facts | {"clients": clients})
        return state

    def _adopt(self) -> None:
        """Begin a ledger with what the run knows."""
        self._refuse_lost_ledger()
        folder = self.folder
        if not folder.learned():
            raise UserError(
                f"{folder.path} has not finished learning, so there is nothing to erase from",
                f"Continue it: foul learn --resume --out {folder.path}",
            )
        tensors, numbers = folder.load_model("learned")
        records = [record for record in folder.records() if record["stage"] == "learning"]
        body: dict[str, Any] = {
            "federation": folder.path.resolve().name,
            "hash": fingerprint(tensors),
            "rounds": numbers["round"],
            "clients": folder.facts()["clients"],
            "participation": participation(records),
            "basis": measured_basis(folder),
        }
        try:
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise not_written(self.path, error) from error
        with self.serving():
            # Another process may have been quicker.
            if not self.ledger.file.is_file():
                Ledger.create(self.ledger.file, "adopted", body)

    def _refuse_lost_ledger(self) -> None:
        if self.folder.erased() or self.receipts.is_dir():
            raise UserError(
                f"The ledger of {self.folder.path} is gone, although it has erased clients before",
                f"Put a backup of {self.ledger.file} back.",
            )
