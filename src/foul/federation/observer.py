"""Hooks for whatever shows or records progress; the base class shows nothing."""

from typing import Any


class Observer:
    """Override what you need."""

    def on_stage(self, stage: str, rounds: int, done: int) -> None:
        """A stage of at most `rounds` rounds starts (or resumes after `done`)."""

    def on_client(self, task: str, client: str, done: int, total: int) -> None:
        """A client has answered, as number `done` of `total`."""

    def on_round(self, record: dict[str, Any]) -> None:
        """A round is complete; `record` is its line in rounds.jsonl."""

    def on_message(self, text: str) -> None:
        """Something worth one line."""

    def on_work(self, what: str, done: int, total: int) -> None:
        """Other long work, such as decoding images, has come this far."""

    def decoded(self, done: int, total: int) -> None:
        """So many images are decoded."""
        self.on_work("decoding images", done, total)


class Observers(Observer):
    """Several observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._all = observers

    def on_stage(self, stage: str, rounds: int, done: int) -> None:
        for observer in self._all:
            observer.on_stage(stage, rounds, done)

    def on_client(self, task: str, client: str, done: int, total: int) -> None:
        for observer in self._all:
            observer.on_client(task, client, done, total)

    def on_round(self, record: dict[str, Any]) -> None:
        for observer in self._all:
            observer.on_round(record)

    def on_message(self, text: str) -> None:
        for observer in self._all:
            observer.on_message(text)

    def on_work(self, what: str, done: int, total: int) -> None:
        for observer in self._all:
            observer.on_work(what, done, total)
