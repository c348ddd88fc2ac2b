"""What is stored about whom: every file of a run, and what an erasure does with it."""

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.deploy.folder import FederationFolder
from foul.deploy.purge import database_size
from foul.erasure.policy import Purge
from foul.erasure.traces import name_pattern
from foul.runs.folder import RunFolder

DATABASE = "message database of the engine"
OURS = "erasure"
"""The store's own folder: it names erased clients on purpose."""


@dataclass(frozen=True)
class Item:
    """One file and what becomes of it."""

    what: str
    path: str
    """Relative to the run folder, or absolute outside it."""
    how: str
    """`delete`, `rewrite`, `replace`, `compact` or `keep`."""
    bytes: int
    why: str = ""
    """Why it stays, if it does."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inventory(
    folder: RunFolder, clients: Collection[str], purge: Purge, config: Config | None = None
) -> list[Item]:
    """What is stored about these clients, or was made from it, and what becomes of it."""
    return [
        *_updates(folder, clients),
        *_derived(folder, purge),
        *_models(folder, purge),
        *_texts(folder),
        *_databases(folder, config or folder.config()),
    ]


def about(folder: RunFolder, client: str, others: Collection[str]) -> list[Item]:
    """What is stored that holds this client's own data."""
    named, own = name_pattern([client], others), _updates(folder, [client])
    own += [
        _item(folder, file, "cached outputs of frozen parts", "delete")
        for file in _files(folder.path / "features")
        if any(any(match.groups()) for match in named.finditer(file.name.encode()))
    ]
    return own


def _updates(folder: RunFolder, clients: Collection[str]) -> list[Item]:
    files = [folder.deltas / f"{client}.safetensors" for client in sorted(clients)]
    return [_item(folder, file, "last update", "delete") for file in files if file.is_file()]


def _derived(folder: RunFolder, purge: Purge) -> list[Item]:
    """What was made with the client's help, and can be made again without it."""
    items = [
        *(("cached outputs of frozen parts", file) for file in _files(folder.path / "features")),
        *(("state of an unlearning", file) for file in _files(folder.path / "unlearning")),
        *(("evaluation", file) for file in _files(folder.evaluation)),
        *(("picture", file) for file in sorted(folder.path.glob("forgetting-*.png"))),
        *(
            (what, folder.path / name)
            for what, name in (
                ("results", "results.json"),
                ("report", "report.html"),
                ("state of a relearning", f"{OURS}/relearning.safetensors"),
            )
            if (folder.path / name).is_file()
        ),
    ]
    found = [_item(folder, file, what, "delete") for what, file in items]
    if folder.history_file.is_file():
        how = "delete" if purge.history == "drop" else "rewrite"
        found.append(_item(folder, folder.history_file, "sums of contributions", how))
    return found


def _models(folder: RunFolder, purge: Purge) -> list[Item]:
    found = []
    for file in _files(folder.models):
        if file.name == "learned.safetensors":
            how = "replace" if purge.old_model == "delete" else "keep"
            why = "" if how == "replace" else "the policy keeps the model that is replaced"
            found.append(_item(folder, file, "model in service until now", how, why))
        else:
            found.append(_item(folder, file, "model that descends from it", "delete"))
    for file in _files(folder.path / OURS / "kept"):
        keep = purge.old_model == "keep"
        why = "the policy keeps models that were replaced" if keep else ""
        how = "keep" if keep else "delete"
        found.append(_item(folder, file, "model that was replaced before", how, why))
    for file in _files(folder.checkpoints):
        keep = purge.checkpoints == "keep"
        why = "the policy keeps checkpoints" if keep else ""
        found.append(_item(folder, file, "checkpoint", "keep" if keep else "delete", why))
    return found


def _texts(folder: RunFolder) -> list[Item]:
    names = (
        ("clients of the run", "run.json"),
        ("records of rounds", "rounds.jsonl"),
        ("accuracy per client", "summary.json"),
    )
    return [
        _item(folder, folder.path / name, what, "rewrite")
        for what, name in names
        if (folder.path / name).is_file()
    ]


def _databases(folder: RunFolder, config: Config) -> list[Item]:
    """The engine's own databases: in the run, or the SuperLink's."""
    files = [
        file
        for file in _files(folder.path)
        if file.suffix in (".db", ".sqlite") and OURS not in file.relative_to(folder.path).parts
    ]
    link = _superlink(config)
    files += [link] if link and link.is_file() else []
    found = [
        replace(_item(folder, file, DATABASE, "compact"), bytes=database_size(file))
        for file in files
    ]
    if config.engine == "flower" and not files:
        why = "it is not beside flower.home: delete the messages in it where it is"
        found.append(Item(DATABASE, "superlink.db", "keep", 0, why))
    return found


def _superlink(config: Config) -> Path | None:
    """The database of the SuperLink whose federation `foul federation up` has laid out."""
    home = config.flower.home or Path(os.environ.get("FLWR_HOME", ""))
    folder = FederationFolder.at(home.parent)
    return folder.database if folder.home == home else None


def _item(folder: RunFolder, file: Path, what: str, how: str, why: str = "") -> Item:
    inside = file.is_relative_to(folder.path)
    path = str(file.relative_to(folder.path)) if inside else str(file)
    return Item(what, path, how, file.stat().st_size, why)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
