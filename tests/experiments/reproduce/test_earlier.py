import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config

from foul.errors import UserError
from foul.experiments.reproduce.catalogue import EXPERIMENTS
from foul.experiments.reproduce.earlier import read_earlier
from foul.experiments.reproduce.notes import origins
from foul.experiments.reproduce.perform import perform
from foul.experiments.reproduce.plan import Asked, Done, Outcome, Trial, Variant
from foul.experiments.reproduce.sources import Source
from foul.experiments.reproduce.write import Stamp, to_json
from foul.federation.observer import Observer

SOURCE = Source("synthetic", None, ("east", "north"))
CONFIG = small_config(data__domains=["east", "north"], clients__per_domain=1, learning__rounds=1)
VARIANTS = (Variant("learned", "none"), Variant("Retrain", "retrain"))
TRIAL = Trial("synthetic", SOURCE, CONFIG, ("domain:north",), VARIANTS)
STAMP = Stamp("foul reproduce", "0.1.0", "2026-11-16")
ORIGIN = "table.json (foul 0.1.0, 2026-11-16)"


class Stages(Observer):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_round(self, record: dict[str, Any]) -> None:
        self.seen.append(record["stage"])


def written(done: Done, file: Path) -> Path:
    asked = Asked([SOURCE], "cpu")
    told = to_json(EXPERIMENTS["table-main"], asked, [done], Outcome([], {}, []), STAMP)
    file.write_text(json.dumps(told))
    return file


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Done:
    [done] = perform([TRIAL], 1, tmp_path_factory.mktemp("first"))
    return done


def test_another_machine_goes_on_from_the_file(first: Done, tmp_path: Path) -> None:
    earlier = read_earlier([written(first, tmp_path / "table.json")])
    stages = Stages()
    more = replace(TRIAL, variants=(*VARIANTS, Variant("Continue", "continue", ("rounds=1",))))
    [done] = perform([more], 1, tmp_path / "second", stages, earlier)
    assert stages.seen == ["learning", "continue"]
    for old, new in zip(first.results, done.results, strict=False):
        assert new == {**old, "origin": ORIGIN}
    assert "origin" not in done.results[2]
    assert done.results[2]["fa_gap"] == 100 * (done.results[2]["fa"] - first.results[1]["fa"])
    assert origins([done]) == [f"2 of 3 results were taken from {ORIGIN}."]
    # Where a result really is from is not forgotten on the way.
    third = read_earlier([written(done, tmp_path / "again.json")])
    assert sorted(e.origin for e in third.values()) == [
        "again.json (foul 0.1.0, 2026-11-16)",
        *[ORIGIN] * 2,
    ]


def test_other_settings_are_other_results(first: Done, tmp_path: Path) -> None:
    earlier = read_earlier([written(first, tmp_path / "table.json")])
    other = CONFIG.model_copy(update={"seed": 5})
    stages = Stages()
    [done] = perform([replace(TRIAL, config=other)], 1, tmp_path / "runs", stages, earlier)
    assert stages.seen == ["learning", "retrain"]
    assert origins([done]) == []


def test_what_is_there_already_is_not_replaced(first: Done, tmp_path: Path) -> None:
    earlier = read_earlier([written(first, tmp_path / "table.json")])
    [again] = perform([TRIAL], 1, first.run.parent.parent, earlier=earlier)
    assert again.results == first.results


def test_results_of_other_data_are_refused(first: Done, tmp_path: Path) -> None:
    file = written(first, tmp_path / "table.json")
    told = json.loads(file.read_text())
    told["trials"][0]["learned"]["accuracy"]["train"]["all"]["samples"] += 1
    file.write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"table\.json .* was made on other data"):
        perform([TRIAL], 1, tmp_path / "runs", earlier=read_earlier([file]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "There is no file"),
        ("[]", "is not what `foul reproduce` writes"),
        ('{"version": "1", "date": "today"}', "KeyError: 'trials'"),
        ('{"version": "1", "date": "today", "trials": [3]}', "TypeError"),
        ("# a page", "table.json is not what `foul reproduce` writes"),
    ],
)
def test_what_is_no_such_file_is_named(text: str | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=problem):
        read_earlier([file])
