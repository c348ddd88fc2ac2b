import json
from pathlib import Path

import pytest

from foul import UserError
from foul.report.collect import collect
from foul.runs.results import add_results

from .reported import CLIENTS, REQUEST, THREE, evaluation, result, write_pictures, write_run


def test_a_run_with_its_evaluations(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", evaluations={"foul": evaluation(0.5)})
    found = collect([run])
    assert found.requests == [REQUEST]
    assert [entry.label for entry in found.of(REQUEST)] == ["none", "foul", "retrain"]
    assert found.entries[1].evaluation["backdoor"] == {"success": 0.375}
    assert found.entries[2].evaluation == {}
    assert found.pictures is None


def test_an_evaluation_of_an_earlier_model_is_left_out(tmp_path: Path) -> None:
    told = {"foul": evaluation(0.5) | {"identity": "old"}, "none": {"identity": "a", "kl": None}}
    results = [result("none", identity="a"), result("foul", identity="new")]
    found = collect([write_run(tmp_path / "a", results, evaluations=told)])
    assert [bool(entry.evaluation) for entry in found.entries] == [True, False]


def test_seeds_in_a_folder_are_averaged_under_one_name(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(tmp_path / f"seed-{seed}", [result("foul")], seed=seed)
    # What the study tells completes what the runs tell.
    add_results(tmp_path / "results.json", [result("foul", seed=1, distance=7.0)])
    add_results(tmp_path / "results.json", [result("retrain", seed=1)])
    found = collect([tmp_path])
    assert [(e.label, e.seed) for e in found.entries] == [("foul", 0), ("foul", 1), ("retrain", 1)]
    assert found.entries[1].result["distance"] == 7.0
    assert "distance" not in found.entries[0].result


def test_a_seed_whose_figures_only_the_study_has(tmp_path: Path) -> None:
    write_run(tmp_path / "seed-4", [], seed=4)
    add_results(tmp_path / "results.json", [result("foul", seed=4), result("foul", seed=5)])
    assert [entry.seed for entry in collect([tmp_path]).entries] == [4]


def test_results_of_a_time_without_seeds_have_their_runs_seed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [], seed=3)
    (run / "results.json").write_text(json.dumps([{"method": "foul", "forget": REQUEST}]))
    assert [entry.seed for entry in collect([run]).entries] == [3]


def test_runs_that_differ_only_in_their_seed_are_one_variant(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 1))]
    found = collect(runs)
    assert {entry.label for entry in found.entries} == {"none", "foul", "retrain"}
    assert {entry.variant for entry in found.entries} == {0}


def test_runs_of_other_settings_are_told_apart(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "short"),
        write_run(tmp_path / "long", learning__rounds=9),
        write_run(tmp_path / "again"),
    ]
    found = collect(runs)
    assert {e.label for e in found.entries if e.method == "foul"} == {
        "foul (short)",
        "foul (long)",
        "foul (again)",
    }
    assert [e.variant for e in found.entries if e.method == "foul"] == [0, 1, 2]


def test_how_fast_a_run_runs_is_no_setting(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=1, threads=2)]
    assert {entry.variant for entry in collect(runs).entries} == {0}


def test_a_run_named_twice_counts_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    assert len(collect([run, tmp_path / "." / "a"]).entries) == len(THREE)


def test_pictures_of_the_first_run_that_has_some(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 1))]
    write_pictures(runs[1])
    pictures = collect(runs).pictures
    assert pictures is not None
    assert pictures.names["domains"] == ["north", "east"]


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run folder .*foul run"):
        collect([tmp_path])
    with pytest.raises(UserError, match="No run was named"):
        collect([])


def test_a_run_without_results_says_which_command_makes_some(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [])
    with pytest.raises(
        UserError, match=rf"`foul unlearn {run} --forget domain:NAME`, or `foul run`"
    ):
        collect([run])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"classes": ("bars", "rings")}, r"classes differ: disc, rings"),
        ({"clients": CLIENTS | {"east-2": "east"}}, r"clients differ: east-2"),
        ({"clients": {"north-0": "south"}}, r"domains differ: east, north, south"),
        ({"data__name": "digits", "data__domains": []}, r"data sets differ: synthetic, digits"),
    ],
)
def test_runs_with_other_data_are_refused(
    tmp_path: Path, other: dict[str, object], message: str
) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", **other)]  # type: ignore[arg-type]
    with pytest.raises(UserError, match=rf"a and .*b have different data \({message}"):
        collect(runs)


def test_a_damaged_evaluation_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", evaluations={"foul": {}})
    (run / "evaluation" / "foul-domain-east.json").write_text("{")
    with pytest.raises(UserError, match=r"foul-domain-east\.json is not valid JSON"):
        collect([run])
