"""Read what runs measured: results, evaluations, pictures, and how each run was made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.errors import UserError
from foul.federation.messages import Tensors
from foul.runs.checkpoint import load_tensors
from foul.runs.folder import RunFolder
from foul.runs.results import Result, read_results, same_model
from foul.unlearning.saved import label_of

RETRAIN = "retrain"
LEARNED = "none"
"""The method that does nothing: its result is that of the learned model."""


@dataclass(frozen=True)
class Run:
    """A run folder, and the results found for it."""

    path: Path
    group: Path
    """The folder of seed runs it belongs to, or itself."""
    facts: Mapping[str, Any]
    config: Config
    summary: Mapping[str, Any]
    results: Sequence[Result]


@dataclass(frozen=True)
class Entry:
    """One method's result for one request and seed.

    Attributes:
        label: the method as the report calls it; with its run's name if runs are compared.
        variant: results are compared with the Retrain of the same variant and seed.
        evaluation: what `foul evaluate` added; empty if it was not run.
    """

    run: Run
    label: str
    variant: int
    result: Result
    evaluation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        return str(self.result.get("method", "-"))

    @property
    def request(self) -> str:
        return str(self.result.get("forget", "-"))

    @property
    def seed(self) -> int:
        return int(self.result.get("seed", self.run.config.seed))


@dataclass(frozen=True)
class Pictures:
    """Reconstructions and embeddings of the learned model."""

    tensors: Tensors
    names: Mapping[str, Any]


@dataclass(frozen=True)
class Collection:
    """Everything a report is made of."""

    runs: Sequence[Run]
    entries: Sequence[Entry]
    pictures: Pictures | None = None

    @property
    def requests(self) -> list[str]:
        return list(dict.fromkeys(entry.request for entry in self.entries))

    def of(self, request: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.request == request]


def collect(paths: Iterable[Path]) -> Collection:
    """Read run folders and folders of seed runs.

    Raises:
        UserError: a path that is no run, a run without results, or runs with different data.
    """
    runs = list({run.path.resolve(): run for path in paths for run in _runs_at(path)}.values())
    if not runs:
        raise UserError("No run was named", "Name at least one run folder.")
    for other in runs[1:]:
        _require_same_data(runs[0], other)
    return Collection(runs, list(_entries(runs)), _pictures(runs))


def _runs_at(path: Path) -> Iterator[Run]:
    if (path / "run.json").is_file():
        yield _run(path, path, [])
        return
    seeds = sorted(file.parent for file in path.glob("seed-*/run.json"))
    if not seeds:
        raise UserError(
            f"{path} is not a run folder (it has no run.json, nor has any seed-* folder in it)",
            "Check the path; `foul run` makes one.",
        )
    told = read_results(path / "results.json")
    for seed in seeds:
        yield _run(seed, path, told)


def _run(path: Path, group: Path, told: Sequence[Result]) -> Run:
    """A run; what its study told about its seed completes what it tells itself of the same
    model."""
    folder = RunFolder.open(path)
    config = folder.config()
    studied = [result for result in told if result.get("seed") == config.seed]
    merged: dict[tuple[Any, Any], Result] = {}
    for result in [*studied, *read_results(folder.results_file)]:
        key = (result.get("method"), result.get("forget"))
        known = merged.get(key, {})
        merged[key] = (known if same_model(known, result) else {}) | result
    if not merged:
        raise UserError(
            f"{path} has no results yet",
            f"Make some: `foul unlearn {path} --forget domain:NAME`, or `foul run`.",
        )
    return Run(path, group, folder.facts(), config, folder.summary(), list(merged.values()))


def _require_same_data(first: Run, other: Run) -> None:
    there = _data(other)
    for what, here in _data(first).items():
        if here != there[what]:
            raise UserError(
                f"{first.path} and {other.path} have different data ({what} differ:"
                f" {_difference(here, there[what])})",
                "Report them one by one.",
            )


def _data(run: Run) -> dict[str, list[str]]:
    """What makes two runs comparable."""
    clients = run.facts.get("clients", [])
    return {
        "data sets": [run.config.data.name],
        "classes": [str(name) for name in run.facts.get("classes", [])],
        "domains": sorted({str(client.get("domain")) for client in clients}),
        "clients": sorted(str(client.get("id")) for client in clients),
    }


def _difference(here: list[str], there: list[str]) -> str:
    """The first names that only one of them has; else the order is what differs."""
    only = [*(x for x in here if x not in there), *(x for x in there if x not in here)]
    return ", ".join(only[:4]) + (", ..." if len(only) > 4 else "") or "their order"


def _entries(runs: Sequence[Run]) -> Iterator[Entry]:
    variants = _variants(runs)
    for number, group in enumerate(variants):
        for run in group:
            for result in run.results:
                method = str(result.get("method", "-"))
                label = method if len(variants) == 1 else f"{method} ({group[0].group.name})"
                yield Entry(run, label, number, result, _evaluation(run, result))


def _variants(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that differ in nothing but their seed, together: only these may be averaged."""
    variants: list[list[Run]] = []
    for run in runs:
        for group in variants:
            seeds = {other.config.seed for other in group}
            if _recipe(group[0]) == _recipe(run) and run.config.seed not in seeds:
                group.append(run)
                break
        else:
            variants.append([run])
    return variants


def _recipe(run: Run) -> dict[str, Any]:
    """The configuration without the seed and what only says how fast it runs."""
    ignored = {"seed", "device", "workers", "threads", "tensorboard"}
    return run.config.model_dump(mode="json", exclude=ignored)


def _evaluation(run: Run, result: Result) -> dict[str, Any]:
    """What was measured of this result's model; nothing if it was of an earlier one."""
    name = label_of(str(result.get("method")), str(result.get("forget")))
    found = RunFolder(run.path).load_evaluation(name)
    same = found.get("identity") == result.get("identity")
    return found if same or "identity" not in found else {}


def _pictures(runs: Sequence[Run]) -> Pictures | None:
    """Those of the first run that has some."""
    for run in runs:
        file = RunFolder(run.path).evaluation / "pictures.safetensors"
        if file.is_file():
            return Pictures(*load_tensors(file))
    return None
