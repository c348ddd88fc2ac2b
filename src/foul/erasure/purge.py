"""The purge: what is stored about erased clients goes, and the store is searched for the rest.

Killed at any moment it can be done again: what it has to remove is noted before the first file
goes (`purge-JOB.json`, with samples of the bytes, which is itself removed at the end).
"""

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foul.config.schema import Config
from foul.deploy.purge import database_files, purge_database
from foul.erasure.inventory import OURS, Item, inventory
from foul.erasure.policy import Purge
from foul.erasure.records import Job
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.erasure.traces import Trace, name_pattern, sample_windows, search
from foul.errors import MachineError, UserError
from foul.federation.messages import Tensors, join_groups
from foul.federation.observer import Observer
from foul.flower.own_run import own_run
from foul.learning.history import residuals
from foul.runs.atomic import write_text
from foul.runs.folder import RunFolder
from foul.runs.results import read_json

FOLDED = "(erased)"
"""Under this name the costs of erased clients stay in the records, summed up."""
_EMPTIED = ("features", "unlearning", "evaluation", "deltas")
"""Folders that a purge may leave empty: they go, too."""


_NAMING = ("ledger.sqlite", "receipts", "keys", "kept", "policy.toml", "purge-")
"""What in the store's own folder names erased clients on purpose."""


def prepare(store: Store, state: State, job: Job, config: Config) -> None:
    """Note what this job has to remove, and samples of it, while all of it is still there."""
    file = _notes(store, job.number)
    if file.is_file():
        return
    rules = Purge.model_validate(job.policy["purge"])
    items = inventory(store.folder, job.clients, rules, config)
    kept = (store.folder.path / job.file).read_bytes()
    if rules.history == "others":
        # Checkpoints hold the same sums as the history, of which these stay.
        groups = _other_groups(store.folder, state)
        kept += b"".join(t.numpy().tobytes() for g in groups.values() for t in g.values())
    windows = []
    for item in items:
        # The new model is among those that are deleted: it stays as the model in service.
        if item.how in ("delete", "replace") and item.path != job.file:
            windows += sample_windows(store.folder.path / item.path, kept)
    notes = {
        "items": [item.to_dict() for item in items],
        "windows": [window.hex() for window in windows],
    }
    write_text(file, json.dumps(notes) + "\n")


def purge(store: Store, state: State, job: Job, observer: Observer) -> dict[str, Any]:
    """Remove it, and search for what is left.

    Returns:
        What was done, for the ledger and the receipt.

    Raises:
        MachineError: something is left; says where.
    """
    notes = read_json(_notes(store, job.number))
    items = [Item(**item) for item in notes["items"]]
    folder, erased = store.folder, set(state.erased)
    with folder.lock():
        for number, item in enumerate(items):
            observer.on_work("purging", number, len(items))
            if item.how == "delete":
                (folder.path / item.path).unlink(missing_ok=True)
            elif item.how == "compact":
                _compact(folder.path / item.path, folder)
        observer.on_work("purging", len(items), len(items))
        forget_names(folder, erased)
        if any(item.how == "rewrite" and "history" in item.path for item in items):
            _drop_groups(folder, state)
        store.sync()
        _remove_empty(folder)
        windows = [bytes.fromhex(window) for window in notes["windows"]]
        found, report = search_store(store, state, windows, items, observer)
    if found:
        where = "; ".join(f"{trace.what} in {trace.file}" for trace in found[:3])
        raise MachineError(
            f"The purge left something behind: {where}",
            f"Remove it and go on with: foul erase run {folder.path}",
        )
    return {
        "items": [asdict(item) for item in items],
        "searched": report,
        "found": 0,
    }


def end(store: Store, job: Job) -> None:
    """The notes of a purge that is done go as well."""
    _notes(store, job.number).unlink(missing_ok=True)


def search_store(
    store: Store,
    state: State,
    windows: list[bytes],
    items: list[Item],
    observer: Observer,
) -> tuple[list[Trace], dict[str, int]]:
    """Search everything in the run for erased names and purged bytes; not what names them on
    purpose: the ledger and the receipts, erased.json, and the operator's own configuration."""
    root = store.folder.path
    # The model in service has the place of the one that is kept elsewhere.
    kept = {i.path for i in items if i.how == "keep" and not i.path.startswith("models")}
    files = [
        (file, str(file.relative_to(root)))
        for file in sorted(root.rglob("*"))
        if file.is_file() and not _on_purpose(file.relative_to(root), kept)
    ]
    # Databases outside the run know clients by name; no bytes of them may be there.
    databases = [Path(item.path) for item in items if Path(item.path).is_absolute()]
    outside = [file for database in databases for file in database_files(database)]
    names = name_pattern(state.erased, state.clients)
    found, total = search(
        files, names, windows, lambda d, t: observer.on_work("searching for leftovers", d, t)
    )
    for file in outside:
        content = file.read_bytes()
        total += len(content)
        if any(window in content for window in windows):
            found.append(Trace(str(file), "purged bytes"))
    counts = {
        "files": len(files) + len(outside),
        "bytes": total,
        "names": len(state.erased),
        "windows": len(windows),
    }
    return found, counts


def forget_names(folder: RunFolder, erased: Collection[str]) -> None:
    """Take erased clients out of the records of rounds and out of the summary."""
    records = folder.records()
    for record in records:
        for client in erased & record["costs"].keys():
            spent, rest = record["costs"].pop(client), record["costs"].get(FOLDED, {})
            record["costs"][FOLDED] = {key: v + rest.get(key, 0) for key, v in spent.items()}
        record["failures"] = {c: why for c, why in record["failures"].items() if c not in erased}
        for key in ("weights", "cosines"):
            for client in erased & record.get("matching", {}).get(key, {}).keys():
                del record["matching"][key][client]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    file = folder.path / "rounds.jsonl"
    if file.is_file() and file.read_text(encoding="utf-8") != lines:
        write_text(file, lines)
    summary = folder.summary()
    for split in summary.get("accuracy", {}).values():
        split["clients"] = {c: v for c, v in split["clients"].items() if c not in erased}
    missing = summary.get("not_evaluated", {})
    summary["not_evaluated"] = {c: why for c, why in missing.items() if c not in erased}
    folder.write_summary(summary)


def _drop_groups(folder: RunFolder, state: State) -> None:
    """Sums of groups in which nobody was erased stay."""
    kept = folder.load_history()
    if kept is not None:
        groups = _other_groups(folder, state)
        joined = join_groups({str(n): group for n, group in enumerate(groups.values())})
        folder.save_history(joined, {**kept[1], "groups": list(groups)})


def _other_groups(folder: RunFolder, state: State) -> dict[str, Tensors]:
    """Sums of contributions of the groups in which nobody was erased."""
    kept = folder.load_history()
    if kept is None:
        return {}
    gone = {f"client:{client}" for client in state.erased}
    gone |= {f"domain:{state.clients[client].domain}" for client in state.erased}
    return {group: sums for group, sums in residuals(*kept).items() if group not in gone}


def _compact(file: Path, folder: RunFolder) -> None:
    """Delete the messages in a database of the engine, so that their bytes are gone. Everybody has
    answered by now, or will not be heard any more.

    Raises:
        MachineError: it is in use.
    """
    if not file.is_file():
        return
    try:
        purge_database(file, own_run())
    except UserError as error:
        raise MachineError(
            f"The engine's database: {error.what}",
            f"Stop what uses it (foul federation down), then: foul erase run {folder.path} "
            "engine=local",
        ) from error


def _remove_empty(folder: RunFolder) -> None:
    for name in _EMPTIED:
        root = folder.path / name
        if root.is_dir():
            inner = sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True)
            for path in (*inner, root):
                if not any(path.iterdir()):
                    path.rmdir()


def _on_purpose(relative: Path, kept: Collection[str]) -> bool:
    if relative.parts[0] == OURS:
        return relative.parts[1].startswith(_NAMING)
    return str(relative) in kept or str(relative) in ("erased.json", "config.toml")


def _notes(store: Store, job: int) -> Path:
    return store.path / f"purge-{job}.json"
