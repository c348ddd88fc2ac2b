import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foul import UserError
from foul.errors import MachineError
from foul.runs.results import add_results, read_results

entries = st.lists(
    st.fixed_dictionaries(
        {
            "method": st.sampled_from(["foul", "retrain"]),
            "forget": st.sampled_from(["domain:a", "client:b"]),
            "seed": st.integers(0, 1),
            "fa": st.floats(0, 1),
        }
    ),
    max_size=6,
    unique_by=lambda entry: (entry["method"], entry["forget"], entry["seed"]),
)


def test_no_file_is_no_results(tmp_path: Path) -> None:
    assert read_results(tmp_path / "results.json") == []


@settings(max_examples=25)
@given(st.lists(entries, max_size=4))
def test_the_newest_of_each_method_request_and_seed_stays(
    tmp_path_factory: pytest.TempPathFactory, calls: list[list[dict[str, Any]]]
) -> None:
    file = tmp_path_factory.mktemp("results") / "results.json"
    newest: dict[tuple[object, ...], dict[str, Any]] = {}
    for call in calls:
        add_results(file, iter(call))
        for entry in call:
            key = (entry["method"], entry["forget"], entry["seed"])
            # In the place where it was first.
            newest[key] = entry
    assert read_results(file) == list(newest.values())


def test_the_file_is_a_plain_list(tmp_path: Path) -> None:
    result = {"method": "foul", "forget": "domain:é", "seed": 0, "curve": [{"round": 0}]}
    add_results(tmp_path / "results.json", [result])
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == [result]
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]


def test_a_result_is_completed_only_if_it_is_of_the_same_model(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    made = {"method": "foul", "forget": "domain:a", "seed": 0, "options": {"rounds": 7}}
    add_results(file, [made | {"identity": "one", "kl_test": 0.5}])
    add_results(file, [made | {"identity": "one", "fa": 0.7}])
    assert read_results(file) == [made | {"identity": "one", "kl_test": 0.5, "fa": 0.7}]
    # Learned anew: what was measured of the old model says nothing of this one.
    add_results(file, [made | {"identity": "two", "fa": 0.6}])
    assert read_results(file) == [made | {"identity": "two", "fa": 0.6}]


def test_results_of_a_time_without_seeds_are_replaced_too(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    add_results(file, [{"method": "foul", "forget": "domain:a", "fa": 1}])
    add_results(file, [{"method": "foul", "forget": "domain:a", "fa": 2}])
    assert [result["fa"] for result in read_results(file)] == [2]


def test_what_was_there_survives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.json"
    add_results(file, [{"method": "foul", "forget": "domain:a", "seed": 0}])
    before = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MachineError, match="disk is full"):
        add_results(file, [{"method": "foul", "forget": "domain:a", "seed": 1}])
    assert file.read_bytes() == before


@pytest.mark.parametrize("text", ["[{", "", "results"])
def test_what_is_not_json_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"results\.json is not valid JSON"):
        read_results(file)
    with pytest.raises(UserError):
        add_results(file, [{"method": "foul", "forget": "domain:a", "seed": 0}])
    assert file.read_text() == text


@pytest.mark.parametrize("text", ['{"method": "foul"}', "5", "[1]"])
def test_json_that_is_no_list_of_results_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"results\.json"):
        read_results(file)
