from pathlib import Path
from typing import Any

import pytest
from small_runs import Crash, StopAfter, small_config

from foul import UserError
from foul.experiments import shadows as module
from foul.experiments.shadows import ShadowStudy, run_shadows
from foul.federation.build import load_clients
from foul.runs.folder import RunFolder
from foul.unlearning.stage import unlearn


def study(**values: Any) -> ShadowStudy:
    config = small_config(clients__per_domain=1, learning__rounds=1)
    usual: dict[str, Any] = {
        "config": config,
        "forget": "domain:east",
        "methods": ("none", "continue"),
        "shadows": 4,
        "options": {"continue": ("rounds=1",)},
    }
    return ShadowStudy(**(usual | values))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    out = tmp_path_factory.mktemp("shadows")
    return out, run_shadows(study(), out)


def test_two_attacks_on_each_method_and_one_on_retrain(
    finished: tuple[Path, list[dict[str, Any]]],
) -> None:
    out, rows = finished
    assert [(row["method"], row["attack"]) for row in rows] == [
        ("none", "lira"),
        ("none", "u-lira"),
        ("continue", "lira"),
        ("continue", "u-lira"),
        ("retrain", "lira"),
    ]
    for row in rows:
        assert 0 <= row["auc_low"] <= row["auc"] <= row["auc_high"] <= 1
        assert row["shadows"] == 4
    assert sorted(path.name for path in out.iterdir()) == [f"shadow-0{n}" for n in range(4)]


def test_shadows_differ_in_what_they_saw(finished: tuple[Path, list[dict[str, Any]]]) -> None:
    out, _ = finished
    folders = [RunFolder.open(out / f"shadow-0{n}") for n in range(4)]
    assert [folder.config().seed for folder in folders] == [0, 1, 2, 3]
    assert {folder.config().clients.redeal for folder in folders} == {0.5}


def test_all_shadows_share_out_the_same_samples() -> None:
    """Also of a set that is made or drawn by the seed."""
    pools = []
    for number in (0, 1):
        data, _ = load_clients(module._config(study(), number))
        pools.append([domain.train.images for domain in data.domains])
    for one, other in zip(*pools, strict=True):
        assert one.equal(other)


def test_another_method_later_reuses_the_shadows(
    finished: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rows = finished
    unlearned: list[str] = []

    def counted(run: Path, forget: str, method: str, *rest: Any, **more: Any) -> dict[str, Any]:
        unlearned.append(method)
        return unlearn(run, forget, method, *rest, **more)

    monkeypatch.setattr(module, "unlearn", counted)
    monkeypatch.setattr(module, "_answers", lambda *_: pytest.fail("everything is known"))
    assert run_shadows(study(), out) == rows
    assert unlearned.count("retrain") == 4


def test_a_study_that_was_stopped_goes_on(
    finished: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with pytest.raises(Crash):
        run_shadows(study(), tmp_path / "out", StopAfter(1))
    assert run_shadows(study(), tmp_path / "out") == finished[1]


def test_a_domain_typed_otherwise_is_the_same(
    finished: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rows = finished
    monkeypatch.setattr(module, "_answers", lambda *_: pytest.fail("everything is known"))
    assert run_shadows(study(forget="domain: East"), out) == rows


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"forget": "client:east-0"}, "Attack a whole domain"),
        ({"forget": "domain:eest"}, "no domain 'eest'.*Did you mean 'east'"),
        ({"forget": "domain:east,north"}, "forgets all 2 clients"),
        ({"shadows": 3}, "Use 4 or more"),
        ({"methods": ()}, "No method was chosen"),
        ({"methods": ("fool",)}, "There is no method 'fool'"),
        ({"config": small_config(backdoor__clients=["east"])}, "backdoor.clients"),
    ],
)
def test_what_cannot_be_is_refused_first(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run_shadows(study(**values), tmp_path / "out")
    assert not (tmp_path / "out").exists()
