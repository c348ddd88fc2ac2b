"""Learning goes on: more rounds over everybody who may take part, readmitted clients included."""

import math
from typing import Any

from foul.config.schema import Config
from foul.erasure.asking import federation_of
from foul.erasure.fingerprint import fingerprint
from foul.erasure.records import Version
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.erasure.summary import summarise
from foul.errors import UserError
from foul.federation.build import Setting
from foul.federation.ledger import Ledger
from foul.federation.messages import join_groups, take_group
from foul.federation.observer import Observer
from foul.learning.going_on import RATE, going_on
from foul.learning.rounds import LearningState, learning_round
from foul.runs.checkpoint import load_tensors, save_tensors

STAGE = "relearning"


def relearn(
    store: Store,
    rounds: int = 5,
    rate: float = RATE,
    observer: Observer | None = None,
    config: Config | None = None,
) -> Version:
    """Train the model in service for some more rounds; the result takes its place.

    Interrupted, the same call goes on where it stopped.

    Args:
        rate: local rates as a share of those of the learning stage.
        config: the run's configuration with other settings of the machine (device, engine).

    Raises:
        UserError: an erasure is under way, the rate is none, or the model in service is unknown.
        QuorumError: too few clients answered; complete rounds are saved.
    """
    if not 0 < rate < math.inf:
        raise UserError(f"A rate of {rate} teaches nothing", f"Choose one above 0, like {RATE}.")
    observer, config = observer or Observer(), config or store.folder.config()
    with store.serving():
        state = store.sync()
        if state.unfinished:
            raise UserError(
                f"Job {state.unfinished.number} was interrupted and comes first",
                f"Go on with it: foul erase run {store.folder.path}",
            )
        with federation_of(store, state, (), config, observer) as setting:
            return _Relearning(store, state, setting, observer).run(rounds, rate)


class _Relearning:
    """Rounds from the model in service on, saved after each."""

    def __init__(self, store: Store, state: State, setting: Setting, observer: Observer) -> None:
        self._store, self._state, self._setting = store, state, setting
        self._observer = observer
        self._file = store.path / "relearning.safetensors"

    def run(self, rounds: int, rate: float) -> Version:
        learned, numbers = self._store.folder.load_model("learned")
        restored = self._restore(rounds, rate)
        if restored is None or fingerprint(restored[0].tensors) != fingerprint(learned):
            # Else it was killed between the rename and the entry, and is only to be noted.
            self._store.require_known_model()
        learning, took = restored or (LearningState(dict(learned)), {})
        recipe = going_on(self._store.folder.config().learning, rounds, rate)
        federation = self._setting.federation
        self._observer.on_stage(STAGE, rounds, learning.round)
        while learning.round < rounds:
            record = learning_round(
                federation, recipe, learning, federation.clients, self._setting.buffers, STAGE
            )
            for client in record["costs"].keys() - record["failures"].keys():
                took[client] = took.get(client, 0) + 1
            self._save(learning, took, rounds, rate)
            self._observer.on_round(record)
        version = len(self._state.versions)
        with self._store.folder.lock():
            told = {**numbers, "version": version}
            self._store.folder.save_model("learned", learning.tensors, told)
        summarise(self._store.folder, self._setting, learning.tensors, federation.clients)
        self._store.append(
            "relearned",
            {
                "version": version,
                "hash": fingerprint(learning.tensors),
                "rounds": rounds,
                "participation": took,
                "costs": federation.ledger.total(STAGE).to_dict(),
            },
        )
        self._file.unlink(missing_ok=True)
        return self._store.state().current

    def _identity(self, rounds: int, rate: float) -> list[Any]:
        return [self._state.current.hash, rounds, rate, sorted(self._state.erased)]

    def _save(
        self, learning: LearningState, took: dict[str, int], rounds: int, rate: float
    ) -> None:
        groups = {"model": learning.tensors, "velocity": learning.velocity}
        numbers = {
            "identity": self._identity(rounds, rate),
            "round": learning.round,
            "took": took,
            "ledger": self._setting.federation.ledger.to_dict(),
        }
        save_tensors(self._file, join_groups(groups), numbers)

    def _restore(self, rounds: int, rate: float) -> tuple[LearningState, dict[str, int]] | None:
        """Where the same rounds from the same version were interrupted, if they were."""
        if not self._file.is_file():
            return None
        tensors, saved = load_tensors(self._file)
        if saved["identity"] != self._identity(rounds, rate):
            return None
        self._setting.federation.ledger = Ledger(saved["ledger"])
        state = LearningState(
            take_group(tensors, "model"), take_group(tensors, "velocity"), saved["round"]
        )
        return state, saved["took"]
