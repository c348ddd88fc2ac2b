import json
import shutil
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from small_runs import Crash, small_config

from foul import Config, Observer, UserError
from foul.evaluation.time_to_forget import rounds_to_reach, time_to_forget
from foul.experiments import study as module
from foul.experiments.store import ResultStore, slim
from foul.experiments.study import Study, compared, run_study
from foul.runs.folder import RunFolder

# Named from the first to the last letter, so that it is clear which domain is the last.
CONFIG = {"data__domains": ["east", "north"], "clients__per_domain": 1, "learning__rounds": 1}
METHODS = ("none", "foul", "retrain")
OPTIONS = {"foul": ("rounds=1", "extra=0", "standin_rounds=1", "batch_size=8")}


def tiny(**changes: object) -> Config:
    return small_config(**(CONFIG | changes))


def study_of(**values: Any) -> Study:
    usual: dict[str, Any] = {"config": tiny(), "methods": METHODS, "options": OPTIONS}
    return Study(**(usual | values))


class Counting(Observer):
    """Stages of the rounds it saw."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def on_round(self, record: dict[str, Any]) -> None:
        self.stages.append(record.get("stage", "learning"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]], Path]:
    """A study, its results and its store; do not change them."""
    place = tmp_path_factory.mktemp("study")
    store = ResultStore(place / "store.json")
    return place / "out", run_study(study_of(), place / "out", store=store), store.file


def test_one_result_per_method_with_its_gaps(
    finished: tuple[Path, list[dict[str, Any]], Path],
) -> None:
    out, results, _ = finished
    assert [result["method"] for result in results] == list(METHODS)
    assert {result["forget"] for result in results} == {"domain:north"}
    assert {result["seed"] for result in results} == {0}
    assert results == [slim(r) for r in json.loads((out / "results.json").read_text())]
    retrain = results[2]
    for result in results:
        shortfalls = [max(0, retrain[name] - result[name]) for name in ("ra", "ta")]
        alike = [abs(result[name] - retrain[name]) for name in ("fa", "mia_accuracy")]
        assert result["fa_gap"] == pytest.approx(100 * (result["fa"] - retrain["fa"]))
        assert result["flops_share"] == pytest.approx(result["flops"] / retrain["flops"])
        assert result["distance"] == pytest.approx(25 * sum(shortfalls + alike))
        assert result["best_stop"] in result["curve"]
        assert result["t2f"] == time_to_forget(result["curve"], result["learned_fa"])
        assert result["rounds_to_retrain"] == rounds_to_reach(result["curve"], retrain["fa"])
        assert result["wall_seconds_share"] == result["wall_seconds"] / retrain["wall_seconds"]
        for kind in ("forget", "retain", "test"):
            assert (result[f"kl_{kind}"] > 0) == (result["method"] != "retrain")
    assert [len(result["curve"]) for result in results] == [1, 2, 2]
    # The learned model is where FOUL begins and `none` ends.
    assert results[0]["fa"] == results[1]["curve"][0]["fa"]
    assert [result["rounds"] for result in results] == [0, 1, 1]
    assert results[1]["options"]["batch_size"] == 8


def test_one_seed_is_one_run_folder_with_a_picture(
    finished: tuple[Path, list[dict[str, Any]], Path],
) -> None:
    out, _, _ = finished
    run = RunFolder.open(out)
    assert run.learned()
    assert sorted(file.stem for file in run.models.glob("*.safetensors")) == [
        *("foul-domain-north", "learned", "none-domain-north", "retrain-domain-north")
    ]
    assert not list(out.glob("seed-*"))
    with PIL.Image.open(out / "forgetting-domain-north.png") as image:
        image.load()
        assert image.format == "PNG"


def test_the_same_call_does_nothing_again(
    finished: tuple[Path, list[dict[str, Any]], Path], tmp_path: Path
) -> None:
    out, results, store = finished
    again = Path(shutil.copytree(out, tmp_path / "out"))
    counting = Counting()
    assert run_study(study_of(), again, counting, ResultStore(store)) == results
    assert counting.stages == []
    assert [slim(r) for r in json.loads((again / "results.json").read_text())] == results


def test_without_a_store_the_run_folder_knows(tmp_path: Path) -> None:
    counting = Counting()
    study = study_of(methods=("none", "retrain"))
    first = run_study(study, tmp_path / "out", counting)
    assert len(counting.stages) == 2
    assert run_study(study, tmp_path / "out", counting) == first
    assert len(counting.stages) == 2
    # One method more is all that is done.
    more = run_study(
        study_of(methods=("none", "continue", "retrain"), options={"continue": ["rounds=1"]}),
        tmp_path / "out",
        counting,
    )
    assert counting.stages[2:] == ["continue"]
    assert [more[0], more[2]] == first
    assert "distance" in more[1]


def test_a_store_that_knows_everything_unlearns_nothing(
    finished: tuple[Path, list[dict[str, Any]], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, results, store = finished

    def never(*_: object, **__: object) -> None:
        raise AssertionError("unlearned")

    monkeypatch.setattr(module, "unlearn", never)
    counting = Counting()
    found = run_study(study_of(), tmp_path / "new", counting, ResultStore(store))
    # A divergence takes two models, which are not here.
    assert found == [{k: v for k, v in r.items() if not k.startswith("kl_")} for r in results]
    assert counting.stages == ["learning"]
    # Another option is something else.
    with pytest.raises(AssertionError, match="unlearned"):
        run_study(study_of(options={}), tmp_path / "new", store=ResultStore(store))


def test_what_is_stored_is_what_was_found(
    finished: tuple[Path, list[dict[str, Any]], Path],
) -> None:
    _, results, store = finished
    stored = {r["method"]: r for r in json.loads(store.read_text()).values()}
    assert len(stored) == 3
    for result in results:
        kept = stored[result["method"]]
        # Gaps belong to a comparison, not to a method.
        assert "distance" not in kept
        assert kept == {name: result[name] for name in kept}


@pytest.mark.parametrize("stop", ["learning", "retrain"])
def test_a_study_that_was_killed_goes_on(tmp_path: Path, stop: str) -> None:
    class Stop(Observer):
        def on_round(self, record: dict[str, Any]) -> None:
            if record.get("stage", "learning") == stop:
                raise Crash

    study = study_of(methods=("none", "retrain"), config=tiny(learning__rounds=2))
    expected = run_study(study, tmp_path / "whole")
    with pytest.raises(Crash):
        run_study(study, tmp_path / "broken", Stop())
    counting = Counting()
    results = run_study(study, tmp_path / "broken", counting)
    done = {"learning": ["learning", "retrain", "retrain"], "retrain": ["retrain"]}
    assert counting.stages == done[stop]
    for key in ("fa", "ra", "ta", "distance", "best_stop", "curve"):
        assert [result[key] for result in results] == [result[key] for result in expected]


def test_several_seeds_have_a_folder_each(tmp_path: Path) -> None:
    study = study_of(
        config=tiny(seed=4), methods=("none", "retrain"), seeds=2, forget=("domain:east",)
    )
    results = run_study(study, tmp_path / "out")
    assert [(r["seed"], r["method"]) for r in results] == [
        *((4, "none"), (4, "retrain"), (5, "none"), (5, "retrain"))
    ]
    assert {r["forget"] for r in results} == {"domain:east"}
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        *("results.json", "seed-4", "seed-5")
    ]
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    for seed in (4, 5):
        folder = RunFolder.open(tmp_path / "out" / f"seed-{seed}")
        assert folder.config().seed == seed
        assert (folder.path / "forgetting-domain-east.png").is_file()
    # Each is compared with the Retrain of its own seed.
    assert [r["distance"] for r in results if r["method"] == "retrain"] == [0, 0]
    assert results[2]["fa_gap"] == pytest.approx(100 * (results[2]["fa"] - results[3]["fa"]))
    counting = Counting()
    assert run_study(study, tmp_path / "out", counting) == results
    assert counting.stages == []


def test_a_request_typed_otherwise_is_served_once(tmp_path: Path) -> None:
    config = tiny(data__domains=["east", "north", "west"])
    typed = ("domain:north,east", "domain:East, north", "domain:east,north,east")
    study = study_of(config=config, methods=("none", "retrain"), forget=typed)
    store = ResultStore(tmp_path / "store.json")
    results = run_study(study, tmp_path / "out", store=store)
    assert [r["forget"] for r in results] == ["domain:east,north"] * 2
    assert len(store.results) == 2
    # The divergence finds the Retrain of the same request.
    assert results[0]["kl_forget"] > 0
    assert [file.name for file in (tmp_path / "out").glob("*.png")] == [
        "forgetting-domain-east-north.png"
    ]


def test_several_requests_share_the_learned_model(tmp_path: Path) -> None:
    counting = Counting()
    requests = ("domain:east", "client:north-0")
    study = study_of(methods=("none",), forget=requests)
    results = run_study(study, tmp_path / "out", counting)
    assert [r["forget"] for r in results] == list(requests)
    assert counting.stages == ["learning"]
    assert sorted(file.name for file in (tmp_path / "out").glob("*.png")) == [
        *("forgetting-client-north-0.png", "forgetting-domain-east.png")
    ]
    # Without Retrain there is nothing to be compared with.
    assert "distance" not in results[0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"methods": ()}, "No method was chosen.*--methods"),
        ({"methods": ("none", "fool")}, "no method 'fool'.*Did you mean 'foul'"),
        ({"options": {"foul": ["kapa=1"]}}, "Did you mean 'kappa'"),
        ({"options": {"retrain": ["rounds=-1"]}}, "rounds"),
    ],
)
def test_what_cannot_be_is_refused_before_learning(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    counting = Counting()
    with pytest.raises(UserError, match=message):
        run_study(study_of(**values), tmp_path / "out", counting)
    assert counting.stages == []
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_request_is_refused_before_learning(tmp_path: Path) -> None:
    counting = Counting()
    with pytest.raises(UserError, match="does not say whom to forget"):
        run_study(study_of(forget=("east",)), tmp_path / "out", counting)
    assert counting.stages == []


@pytest.mark.parametrize("request_", ["domain:nort", "client:north-7"])
def test_an_unknown_name_is_refused_before_learning(tmp_path: Path, request_: str) -> None:
    seen = Counting()
    with pytest.raises(UserError, match="There is no"):
        run_study(study_of(forget=(request_,)), tmp_path / "out", seen)
    assert not seen.stages
    assert not (tmp_path / "out").exists()


def test_options_of_an_unknown_method_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'foul'"):
        run_study(study_of(methods=("none",), options={"fool": ["rounds=1"]}), tmp_path / "out")


def test_the_last_domain_is_that_of_the_configuration(tmp_path: Path) -> None:
    config = tiny(data__domains=["north", "East"])
    [result] = run_study(study_of(config=config, methods=("none",)), tmp_path / "out")
    assert result["forget"] == "domain:east"


def test_a_store_takes_nothing_from_the_run_folder(
    finished: tuple[Path, list[dict[str, Any]], Path],
) -> None:
    out, _, _ = finished
    listed = json.loads((out / "results.json").read_text())
    assert all((out / result["model"]).is_file() for result in listed)


def test_divergence_can_be_left_out(tmp_path: Path) -> None:
    study = study_of(methods=("none", "retrain"), divergence=False)
    results = run_study(study, tmp_path / "out")
    assert not any(key.startswith("kl_") for result in results for key in result)
    assert not list((tmp_path / "out").rglob("pictures.safetensors"))


def test_a_single_domain_asks_whom_to_forget(tmp_path: Path) -> None:
    config = tiny(data__domains=["east"], clients__per_domain=2)
    study = study_of(config=config, methods=("none",))
    with pytest.raises(UserError, match=r"single domain.*--forget client:ID"):
        run_study(study, tmp_path / "out")
    asked = study_of(config=config, methods=("none",), forget=("client:east-1",))
    assert run_study(asked, tmp_path / "out")[0]["forget"] == "client:east-1"


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError):
        run_study(study_of(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]
    run_study(study_of(methods=("none",)), tmp_path / "out")
    with pytest.raises(UserError, match=r"another configuration \(learning\.rounds differ\)"):
        run_study(study_of(config=tiny(learning__rounds=2)), tmp_path / "out")


def test_a_comparison_without_retrain_adds_nothing() -> None:
    results = [{"method": "foul", "fa": 0.5, "ra": 0.5, "ta": 0.5, "curve": []}]
    assert compared(results) == results
    retrain = {"method": "retrain", "fa": 0.5, "ra": 0.5, "ta": 0.75, "curve": []}
    [foul, itself] = compared([*results, retrain])
    assert (foul["distance"], foul["ta_gap"], foul["best_stop"]) == (25 / 3, -25, None)
    assert itself["distance"] == 0
    assert "distance" not in results[0]
