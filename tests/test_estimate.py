from pathlib import Path

import pytest
from small_runs import small_config

import foul.estimate as module
from foul import MachineError, learn
from foul.client.worker import Worker
from foul.estimate import estimate
from foul.federation.messages import Reply


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"learning__objective": "supervised"},
        {"learning__server_momentum": 0.9, "federation__participation": 0.6},
        {"model__adversarial": True, "learning__l2u__alpha_adv": 0.1, "clients__per_domain": 5},
        {"federation__participation": 0.5, "clients__per_domain": 1, "data__domains": []},
    ],
)
def test_bytes_are_those_of_a_real_run(tmp_path: Path, change: dict[str, object]) -> None:
    # A backbone of more than a few kilobytes, so that the settings' JSON hardly counts.
    config = small_config(**{"learning__rounds": 1, "model__backbone": "small"} | change)
    told = estimate(config)
    folder = learn(config, tmp_path / "run")
    cost = folder.summary()["costs"]["learning"]
    assert told.clients == len(folder.facts()["clients"])
    assert told.megabytes_per_round * 1e6 == pytest.approx(
        cost["bytes_down"] + cost["bytes_up"], rel=0.02
    )
    (checkpoint,) = folder.checkpoints.iterdir()
    assert told.checkpoint_bytes == pytest.approx(checkpoint.stat().st_size, rel=0.05)


def test_figures_are_consistent() -> None:
    told = estimate(small_config(learning__rounds=30))
    assert all(value > 0 for value in told.to_dict().values())
    assert told.minutes == pytest.approx(told.seconds_per_round * 30 / 60)
    assert told.run_bytes >= told.checkpoint_bytes * 2
    assert told.cache_bytes == 2 * 84 * 16 * 16 * 3


def test_time_is_shared_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_seconds_per_image", lambda *_: 0.5)
    one = estimate(small_config())
    two = estimate(small_config(workers=2))
    half = estimate(small_config(federation__participation=0.5))
    assert one.seconds_per_round == pytest.approx(0.5 * one.training_images)
    assert two.seconds_per_round == pytest.approx(one.seconds_per_round / 2)
    assert half.seconds_per_round == pytest.approx(one.seconds_per_round / 2)


def test_training_that_fails_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "perform", lambda *_: Reply("probe", error="RuntimeError: no"))
    with pytest.raises(MachineError, match="A training step fails here: RuntimeError: no"):
        estimate(small_config())
