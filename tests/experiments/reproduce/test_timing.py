from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config

from foul.experiments.reproduce import timing
from foul.experiments.reproduce.domain_tables import MAIN
from foul.experiments.reproduce.plan import Asked, Trial
from foul.experiments.reproduce.sources import Source
from foul.experiments.reproduce.timing import (
    Pace,
    few,
    forecast,
    forecast_table,
    larger_networks,
    pace,
)
from foul.federation.messages import ClientInfo
from foul.federation.observer import Observer

from .made_up import texts

SOURCE = Source("synthetic", None, ("east", "north"))


def client(name: str, domain: str, samples: int) -> ClientInfo:
    return ClientInfo(name, domain, {"train": samples, "validation": 1, "test": 1})


def test_a_few_clients_of_the_largest_domain_are_timed() -> None:
    clients = [
        client("a-0", "a", 10),
        *(client(f"b-{n}", "b", 20) for n in range(3)),
        client("c-0", "c", 50),
    ]
    assert [c.id for c in few(clients, 2)] == ["b-0", "b-1"]


def test_two_rounds_are_timed_and_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    seconds = iter((9.0, 2.0))

    def counted(federation: Any, config: Any, state: Any, clients: Any, *_: Any) -> dict[str, Any]:
        asked.append(len(clients))
        return {"seconds": next(seconds)}

    monkeypatch.setattr(timing, "learning_round", counted)
    # One worker: one of four equal clients, so a round of all takes four times as long.
    assert pace(small_config()) == Pace(8.0, 1, 4)
    assert asked == [1, 1]


def test_a_forecast_is_made_of_rounds() -> None:
    trials = [Trial("one", SOURCE, small_config()), Trial("two", SOURCE, small_config())]
    found = forecast(trials)
    assert [f.label for f in found] == ["one", "two"]
    assert found[0].seconds_per_round == found[1].seconds_per_round > 0
    assert found[0].minutes == pytest.approx(3 * found[0].seconds_per_round / 60)
    table = texts(forecast_table(found, 2))
    assert [line[0] for line in table] == ["one", "two", "all, 2 seeds"]
    assert found[0].to_dict()["learning_rounds"] == 3


def test_larger_networks_are_timed_once_and_extrapolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def timed(config: Any, observer: Any) -> Pace:
        calls.append(config.model.backbone)
        return Pace(36.0, 2, 20)

    monkeypatch.setattr(timing, "pace", timed)
    asked = Asked([Source("pacs", Path("PACS.zip"), ("photo", "sketch"))], "cpu")
    for _ in range(2):
        [shown], told = larger_networks(MAIN, asked, tmp_path / "runs", Observer())
    assert calls == ["resnet18", "resnet50"]
    assert "Not run" in shown.caption
    assert told == []
    first = texts(shown.table)[0]
    # 100 rounds of 36 s are an hour of learning.
    assert first[:5] == ["PACS", "resnet18", "2 of 20", "36", "1.0"]
    assert float(first[5]) > 3


def test_what_cannot_be_timed_is_told_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def timed(config: Any, observer: Any) -> Pace:
        seen.append((config.clients.per_domain, config.learning.rounds))
        if config.model.backbone == "resnet50":
            raise MemoryError("too large")
        return Pace(36.0, 2, 20)

    monkeypatch.setattr(timing, "pace", timed)
    overrides = {"clients.per_domain": 2, "learning.rounds": 3}
    sources = [Source("folder", Path(name), ("east", "west")) for name in ("one", "two")]
    shown, told = larger_networks(MAIN, Asked(sources, "cpu", (), overrides), tmp_path, Observer())
    assert [line[:2] for line in texts(shown[0].table)] == [
        ["one", "resnet18"],
        ["two", "resnet18"],
    ]
    assert told == [f"resnet50 on {name} could not be timed: too large" for name in ("one", "two")]
    # What was changed of the clients holds, the paper's rounds stay; no folder has another's time.
    assert seen == [(2, 100)] * 4
