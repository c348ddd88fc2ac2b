import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config

from foul.errors import UserError
from foul.experiments import study
from foul.experiments.reproduce.notes import failures
from foul.experiments.reproduce.perform import Clock, batches, perform, run_place, spell
from foul.experiments.reproduce.plan import Trial, Variant
from foul.experiments.reproduce.sources import Source
from foul.experiments.reproduce.work import branch_work
from foul.experiments.study import Failure
from foul.federation.observer import Observer
from foul.unlearning.stage import unlearn

SOURCE = Source("synthetic", None, ("east", "north"))
CONFIG = small_config(data__domains=["east", "north"], clients__per_domain=1, learning__rounds=1)
SHORT = ("rounds=1", "extra=0", "standin_rounds=1", "batch_size=8")
VARIANTS = (
    Variant("learned", "none"),
    Variant("Retrain", "retrain"),
    Variant("wide", "foul", SHORT, at={"kappa": 1.0}),
    Variant("narrow", "foul", (*SHORT, "kappa=0.1"), at={"kappa": 0.1}),
)
TRIAL = Trial("synthetic", SOURCE, CONFIG, ("domain:north",), VARIANTS)


class Killed(BaseException):
    """As a signal would: what goes on after failures must not go on after this."""


class Watching(Observer):
    """Stages of the rounds it saw, and what it was told."""

    def __init__(self, stop: int = 99) -> None:
        self.stages: list[str] = []
        self.messages: list[str] = []
        self._stop = stop

    def on_round(self, record: dict[str, Any]) -> None:
        self.stages.append(record["stage"])
        if len(self.stages) == self._stop:
            raise Killed

    def on_message(self, text: str) -> None:
        self.messages.append(text)


def test_a_method_with_two_sets_of_options_is_in_two_studies() -> None:
    labels = [[variant.label for variant in batch] for batch in batches(VARIANTS)]
    assert labels == [["learned", "Retrain", "wide"], ["narrow"]]
    assert batches(()) == []


def test_no_foul_finds_what_another_has_cached(tmp_path: Path) -> None:
    paper = ("rounds=1", "epochs=1")
    two = (Variant("paper's", "foul-paper", paper), Variant("printed", "foul-printed", paper))
    assert len(batches(two)) == 2
    [done] = perform([replace(TRIAL, variants=two)], 1, tmp_path)
    first, second = (result["flops_client"] for result in done.results)
    assert first == second > 0
    assert not (done.run / "features").exists()


def test_variants_branch_from_one_model_and_a_killed_run_goes_on(tmp_path: Path) -> None:
    # Learning and Retrain take a round each; it is killed in the first FOUL.
    killed = Watching(stop=3)
    with pytest.raises(Killed):
        perform([TRIAL], 1, tmp_path, killed)
    assert killed.stages == ["learning", "retrain", "foul"]
    second = Watching()
    [done] = perform([TRIAL], 1, tmp_path, second)
    assert second.stages == ["foul"]
    assert [result["label"] for result in done.results] == [
        *("learned", "Retrain", "wide", "narrow")
    ]
    assert [result["at"] for result in done.results[2:]] == [{"kappa": 1.0}, {"kappa": 0.1}]
    assert [r["options"]["kappa"] for r in done.results[2:]] == [1.0, 0.1]
    assert done.results[1]["distance"] == 0
    assert all("fa_gap" in result and "kl_test" not in result for result in done.results)
    assert [record["round"] for record in done.learned["rounds"]] == [1]
    assert set(done.learned["accuracy"]["test"]["domains"]) == {"east", "north"}
    # Everything is known now, whatever the order of options was.
    third = Watching()
    assert perform([TRIAL], 1, tmp_path, third)[0].results == done.results
    assert third.stages == []
    # Another seed has a run of its own beside the first.
    perform([TRIAL], 2, tmp_path, third)
    assert third.stages == ["learning", "retrain", "foul", "foul"]
    assert {path.name for path in run_place(CONFIG, tmp_path).glob("seed-*")} == {
        *("seed-0", "seed-1")
    }


def test_one_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: Path, forget: str, method: str, *rest: Any, **more: Any) -> Any:
        if method == "foul":
            raise RuntimeError("no matching today")
        return unlearn(run, forget, method, *rest, **more)

    monkeypatch.setattr(study, "unlearn", broken)
    watching = Watching()
    [done] = perform([TRIAL], 1, tmp_path, watching)
    assert [result["label"] for result in done.results] == ["learned", "Retrain"]
    assert any("no matching today" in text for text in watching.messages)
    why = "RuntimeError: no matching today"
    assert done.failures == [
        Failure("wide", "domain:north", 0, why),
        Failure("narrow", "domain:north", 0, why),
    ]
    assert failures([done]) == [
        f"Failed on synthetic: wide, domain:north, seed 0: {why}.",
        f"Failed on synthetic: narrow, domain:north, seed 0: {why}.",
    ]
    lonely = Trial("synthetic", SOURCE, CONFIG, ("domain:north",), VARIANTS[2:])
    with pytest.raises(UserError, match=r"Every method failed on synthetic .*no matching today"):
        perform([lonely], 1, tmp_path, watching)


def test_what_is_measured_is_measured_once(tmp_path: Path) -> None:
    calls = []

    def measure(config: Any, run: Any, observer: Any) -> dict[str, Any]:
        calls.append(run.path)
        return {"mse": 0.25}

    trial = Trial("synthetic", SOURCE, CONFIG, measures={"reconstruction": measure})
    for _ in range(2):
        [done] = perform([trial], 1, tmp_path)
        assert done.learned["reconstruction"] == {"mse": 0.25}
        assert done.results == []
    assert len(calls) == 1


def test_configurations_that_differ_have_places_of_their_own(tmp_path: Path) -> None:
    place = run_place(CONFIG, tmp_path)
    same = CONFIG.model_copy(update={"seed": 3, "workers": 2})
    assert run_place(same, tmp_path) == place
    assert place.name.startswith("synthetic-")
    assert run_place(small_config(learning__rounds=7), tmp_path) != place


@pytest.mark.parametrize("branching", [False, True])
def test_results_of_other_data_are_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branching: bool
) -> None:
    variants = VARIANTS[:2] if branching else ()
    trial = Trial("synthetic", SOURCE, CONFIG, ("domain:north",) if branching else (), variants)
    perform([trial], 1, tmp_path)
    perform([trial], 1, tmp_path)
    [facts] = tmp_path.glob("*/seed-0/run.json")
    told = json.loads(facts.read_text())
    told["clients"][0]["samples"]["train"] += 1
    facts.write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"has changed since it began .*--runs"):
        perform([trial], 1, tmp_path)


def test_chosen_threads_are_a_run_of_its_own(tmp_path: Path) -> None:
    place = run_place(small_config(threads=0), tmp_path)
    assert run_place(small_config(threads=2), tmp_path) != place


def test_the_clock_tells_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("foul.experiments.reproduce.perform.time.monotonic", lambda: now[0])
    told: list[tuple[int, int]] = []

    class Display(Watching):
        def on_work(self, what: str, done: int, total: int) -> None:
            told.append((done, total))

    display = Display()
    clock = Clock(display, total=10.0)
    assert clock.left() is None
    now[0] += 70
    clock.on_round({"stage": "learning"})
    clock.on_round({"stage": "learning"})
    # Two rounds took 70 s: eight are left.
    assert clock.left() == pytest.approx(8 * 35)
    assert display.messages == ["10 % done, about 10 min left"]
    # The trial was planned for 6 rounds, of which 4 were known.
    clock.passed(6.0)
    assert clock.left() == pytest.approx(4 * 35)
    assert told[-1] == (6, 10)


def test_the_clock_counts_only_what_is_left(tmp_path: Path) -> None:
    class Display(Watching):
        def __init__(self) -> None:
            super().__init__()
            self.totals: set[int] = set()

        def on_work(self, what: str, done: int, total: int) -> None:
            if what.startswith("everything"):
                self.totals.add(total)

    first, last = Trial("synthetic", SOURCE, CONFIG, ("domain:north",), VARIANTS[:2]), Display()
    perform([first], 1, tmp_path)
    perform([first], 1, tmp_path, last)
    assert last.totals == set()  # nothing is left
    perform([TRIAL], 1, tmp_path, last)
    assert last.totals == {round(branch_work(replace(first, variants=VARIANTS[2:])))}


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3 s"), (600, "10 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_times_are_spelt(seconds: float, text: str) -> None:
    assert spell(seconds) == text
