"""What an experiment gave, in files: JSON, Markdown, LaTeX and pictures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome
from foul.experiments.store import result_key
from foul.report.charts.files import to_png
from foul.report.latex import captioned
from foul.report.tables import Cell, Table
from foul.runs.atomic import not_written, write_text
from foul.version import __version__


@dataclass(frozen=True)
class Stamp:
    """What makes a result repeatable: the command, the version, the day."""

    command: str
    version: str
    date: str

    @classmethod
    def now(cls, command: str) -> "Stamp":
        return cls(command, __version__, datetime.now(UTC).date().isoformat())


def stem_of(experiment: Experiment, asked: Asked, seeds: int = 1) -> str:
    """The name of the files: another data set, size or number of seeds has another one."""
    names = [source.key for source in asked.sources if not experiment.embedded]
    size = [] if asked.size == "cpu" else [asked.size]
    several = [f"{seeds}-seeds"] if seeds > 1 else []
    return "-".join([experiment.name, *names, *size, *several])


def to_json(
    experiment: Experiment, asked: Asked, done: Sequence[Done], outcome: Outcome, stamp: Stamp
) -> dict[str, Any]:
    """Everything: the figures of every trial and seed, by the hash of what made them."""
    return {
        "name": experiment.name,
        "what": experiment.what,
        "where": experiment.where,
        "size": asked.size,
        "data": [source.name for source in asked.sources],
        "made_images": any(source.made for source in asked.sources),
        "command": stamp.command,
        "version": stamp.version,
        "date": stamp.date,
        "notes": list(outcome.notes),
        "failures": [failure.to_dict() for d in done for failure in d.failures],
        "tables": [
            {"caption": shown.caption, "rows": _records(shown.table)} for shown in outcome.tables
        ],
        "trials": [_trial(d) for d in done],
    }


def _trial(done: Done) -> dict[str, Any]:
    config = done.trial.config.model_copy(update={"seed": done.seed})
    results = {}
    for result in done.results:
        key = result_key(config, result["forget"], result["method"], dict(result["options"]))
        results[key] = dict(result)
    return {
        "label": done.trial.label,
        "data": done.trial.source.name,
        "at": dict(done.trial.at),
        "seed": done.seed,
        "learned": dict(done.learned),
        "results": results,
    }


def _records(table: Table) -> list[dict[str, str]]:
    """A table as objects; columns of the same name are told apart by the one before them."""
    names: list[str] = []
    for column in table.columns:
        first = f"{names[-1]}, {column.name}" if column.name in names else column.name
        names.append(first)
    return [
        dict(zip(names, (text_of(cell) for cell in line.cells), strict=True))
        for line in table.lines
    ]


def text_of(cell: Cell) -> str:
    """A cell as a line of text."""
    text = f"{cell.text} {cell.spread}".strip()
    return f"{text} ({cell.beside})" if cell.beside else text


def markdown(
    experiment: Experiment,
    asked: Asked,
    outcome: Outcome,
    stamp: Stamp,
    pictures: Sequence[str],
) -> str:
    """The page of a result: what it is, the command, tables, pictures, and what differs."""
    sets = ", ".join(source.title for source in asked.sources)
    parts = [
        f"# `{experiment.name}`: {experiment.what}",
        f"{experiment.where} of the paper; here on {sets}, size `{asked.size}`.",
        f"    {stamp.command}",
        f"foul {stamp.version}, {stamp.date}. Figures of every seed: the JSON file of this name "
        "that the command writes.",
    ]
    if any(source.made for source in asked.sources):
        parts.append(
            "**The images were made by the command: this page shows that it works, not a result.**"
        )
    parts += [f"{shown.caption}\n\n{table_lines(shown.table)}" for shown in outcome.tables]
    parts += [f"![{Path(file).stem}]({file})" for file in pictures]
    parts.append("## Where it differs from the paper, and why")
    parts.append("\n".join(f"- {note}" for note in outcome.notes))
    return "\n\n".join(parts) + "\n"


def table_lines(table: Table) -> str:
    """A table as Markdown, the best in bold."""
    head = [column.name for column in table.columns]
    lines = [head, ["---"] * len(head)]
    lines += [
        [f"**{text_of(c)}**" if c.best else text_of(c) for c in line.cells] for line in table.lines
    ]
    return "\n".join(f"| {' | '.join(_plain(x) for x in line)} |" for line in lines)


def _plain(text: str) -> str:
    return text.replace("|", "\\|")


def write(
    experiment: Experiment,
    asked: Asked,
    done: Sequence[Done],
    outcome: Outcome,
    out: Path,
    command: str,
    docs: Path | None = None,
) -> tuple[dict[str, Any], list[Path]]:
    """Write everything; answers what is in the JSON file, and the files.

    Raises:
        MachineError: a file cannot be written.
    """
    stamp, stem = Stamp.now(command), stem_of(experiment, asked, len({d.seed for d in done}))
    told = to_json(experiment, asked, done, outcome, stamp)
    names = {
        key: f"{stem}.png" if len(outcome.figures) == 1 else f"{stem}-{key}.png"
        for key in outcome.figures
    }
    page = markdown(experiment, asked, outcome, stamp, list(names.values()))
    texts: Mapping[Path, str] = {
        out / f"{stem}.json": json.dumps(told, indent=1, default=str) + "\n",
        out / f"{stem}.md": page,
        out / f"{stem}.tex": "\n".join(captioned(s.caption, s.table) for s in outcome.tables),
    }
    folders = [out]
    if docs is not None:
        folders.append(docs)
        texts = {**texts, docs / f"{stem}.md": page}
    for folder in folders:
        _make(folder)
    for path, text in texts.items():
        write_text(path, text)
    files = list(texts)
    for key, figure in outcome.figures.items():
        for folder in folders:
            to_png(figure, folder / names[key])
            files.append(folder / names[key])
    return told, files


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from error
