"""Live progress on a terminal, one line per round elsewhere."""

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from foul.federation.observer import Observer


class ProgressDisplay(Observer):
    """Bars for rounds and clients on standard error, with the newest accuracy beside them."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._live = self._console.is_terminal and not quiet
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            disable=not self._live,
        )
        self._bars: dict[str, TaskID] = {}
        self._rounds = 0

    def __enter__(self) -> "ProgressDisplay":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def on_stage(self, stage: str, rounds: int, done: int) -> None:
        self._rounds = rounds
        self._bar(stage, done, rounds)

    def on_client(self, task: str, client: str, done: int, total: int) -> None:
        self._bar("clients", done, total, f"{task} {client}")

    def on_round(self, record: dict[str, Any]) -> None:
        share = record["validation_accuracy"]
        accuracy = "no validation" if share is None else f"validation {100 * share:.1f} %"
        if "forget_train" in record:
            accuracy = f"retain {accuracy}, forget {100 * record['forget_train']:.1f} %"
        self._bar(record["stage"], record["round"], self._rounds, accuracy)
        missing = ", ".join(f"{client}: {why}" for client, why in record["failures"].items())
        if missing:
            self.on_message(f"round {record['round']}: left out {missing}")
        if not self._live:
            losses = "  ".join(f"{name} {value:.3f}" for name, value in record["losses"].items())
            self._console.print(
                f"{record['stage']} {record['round']}/{self._rounds}  {accuracy}  "
                f"{record['seconds']:.1f} s  {losses}",
                markup=False,
                soft_wrap=True,
                highlight=False,
            )

    def on_message(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True, highlight=False)

    def on_work(self, what: str, done: int, total: int) -> None:
        self._bar(what, done, total)

    def _bar(self, name: str, done: int, total: int, note: str = "") -> None:
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=total, note=note)
        self._progress.update(self._bars[name], completed=done, total=total, note=note)
