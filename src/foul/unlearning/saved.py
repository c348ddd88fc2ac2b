"""What a run folder keeps of a request: under which name, for what exactly, and how far it is."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from foul.federation.build import Setting
from foul.federation.ledger import Ledger
from foul.federation.messages import join_groups, key_of, take_group
from foul.names import slug
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.folder import RunFolder
from foul.runs.results import read_results
from foul.unlearning.method import Case, Method, MethodState

LONGEST = 120
"""Letters of a label before it is shortened."""


def label_of(method: str, forget: str) -> str:
    """The name of the model that a method made for a request, and of all files about it."""
    name = f"{method}-{slug(forget)}"
    if len(name) <= LONGEST:
        return name
    # Many clients make a name that no disk takes.
    return f"{name[:LONGEST]}-{blake2b(forget.encode(), digest_size=4).hexdigest()}"


def identity_of(case: Case, method: Method[Any], name: str) -> str:
    """What a saved state must agree with: method, version, options, request, the model it began
    with and who is left out."""
    options = method.options.model_dump(mode="json")
    began = [key_of(case.learned), sorted(case.federation.without)]
    text = json.dumps([name, method.version, case.request.text, options, *began])
    return blake2b(text.encode(), digest_size=8).hexdigest()


def known_result(folder: RunFolder, identity: str, track: bool) -> dict[str, Any] | None:
    """The figures of this very method, options and request, if the run has them and the model."""
    for result in read_results(folder.results_file):
        complete = result.get("curve") or not result["rounds"] or not track
        if result.get("identity") == identity and complete:
            return result if (folder.path / result["model"]).is_file() else None
    return None


def save(
    file: Path, identity: str, state: MethodState, records: list[dict[str, Any]], ledger: Ledger
) -> None:
    tensors = join_groups({"model": state.tensors, "extra": state.extra})
    numbers = {
        "identity": identity,
        "round": state.round,
        "numbers": state.numbers,
        "finished": state.finished,
        "records": records,
        "ledger": ledger.to_dict(),
    }
    save_tensors(file, tensors, numbers)


def restore(
    file: Path, identity: str, setting: Setting
) -> tuple[MethodState | None, list[dict[str, Any]]]:
    """The saved state of this very request and method, if there is one."""
    if not file.is_file():
        return None, []
    tensors, saved = load_tensors(file)
    if saved["identity"] != identity:
        return None, []
    setting.federation.ledger = Ledger(saved["ledger"])
    return (
        MethodState(
            take_group(tensors, "model"),
            take_group(tensors, "extra"),
            saved["numbers"],
            saved["round"],
            saved["finished"],
        ),
        saved["records"],
    )
