from pathlib import Path

import pytest

from foul import UserError
from foul.erasure.lineage import lineage
from foul.erasure.readmission import readmit
from foul.erasure.relearning import relearn
from foul.erasure.requests import file_request
from foul.erasure.run import run
from foul.erasure.store import Store

from .conftest import SHORT


def how(store: Store, client: str) -> list[str]:
    return [version["how"] for version in lineage(store, client)["versions"]]


def test_which_versions_a_client_has_touched(served: Store) -> None:
    assert how(served, "north-1") == ["trained", "unlearned"]
    assert how(served, "north-0") == ["trained", "trained"]
    file_request(served, "client:east-0")
    run(served, [2], "retrain", SHORT)
    assert how(served, "north-1") == ["trained", "unlearned", ""]
    assert how(served, "east-0") == ["trained", "trained", ""]
    readmit(served, "north-1", "they came back")
    assert how(served, "north-1") == ["trained", "unlearned", ""]
    relearn(served, 1)
    assert how(served, "north-1") == ["trained", "unlearned", "", "trained"]
    assert how(served, "east-0") == ["trained", "trained", "", ""]
    found = lineage(served, "North 1")
    assert [version["in_service"] for version in found["versions"]] == [False, False, False, True]
    assert found["readmissions"][0]["reason"] == "they came back"
    assert found["requests"] == [{"id": "R-0001", "state": "done", "receipts": [1]}]


def test_what_is_stored_about_a_client(served: Store) -> None:
    found = lineage(served, "north-0")
    assert found["rounds"] == [[1, 2]]
    assert [item["path"] for item in found["stored"]] == ["deltas/north-0.safetensors"]
    assert lineage(served, "north-1")["stored"] == []


def test_an_unknown_client(served: Store) -> None:
    with pytest.raises(UserError, match=r"no client 'nort-1'.*Did you mean 'north-1'"):
        lineage(served, "nort-1")


def test_a_longer_id_is_another_client(served: Store) -> None:
    cache = served.folder.path / "features" / "key"
    cache.mkdir(parents=True)
    for name in ("north-0-train-e.npy", "north-01-train-e.npy", "session-north-0-1.safetensors"):
        (cache / name).write_bytes(b"")
    found = [Path(item["path"]).name for item in lineage(served, "north-0")["stored"]]
    assert found == [
        "north-0.safetensors",
        "north-0-train-e.npy",
        "session-north-0-1.safetensors",
    ]


def test_who_was_readmitted_helps_to_erase_the_next(served: Store) -> None:
    readmit(served, "north-1", "they came back")
    file_request(served, "client:east-0")
    run(served, [2], "not", SHORT)
    assert how(served, "north-1") == ["trained", "unlearned", "trained"]
