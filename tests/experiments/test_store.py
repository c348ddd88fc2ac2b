import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_config

from foul import UserError
from foul.experiments.store import ResultStore, result_key
from foul.unlearning.methods import METHODS

OPTIONS = {"rounds": 1, "kappa": 1.0}
KEY = result_key(small_config(), "domain:east", "foul", OPTIONS)


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 2},
        {"device": "cuda"},
        {"threads": 0},
        {"tensorboard": True},
        {"data__path": "/elsewhere"},
        {"data__cache": "/elsewhere"},
    ],
)
def test_another_machine_makes_the_same_result(change: dict[str, object]) -> None:
    if "workers" in change:
        change = change | {"threads": 0}
    config = small_config(**change)
    assert config != small_config()
    assert result_key(config, "domain:east", "foul", OPTIONS) == KEY


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"learning__rounds": 4},
        {"learning__l2u__mid_rate": 0.01},
        {"data__image_size": 20},
        {"data__domains": ["east", "north"]},
        {"clients__per_domain": 3},
        {"model__norm": "group"},
        {"federation__dropout": 0.1},
        {"backdoor__clients": ["east"]},
    ],
)
def test_another_setting_makes_another_result(change: dict[str, object]) -> None:
    assert result_key(small_config(**change), "domain:east", "foul", OPTIONS) != KEY


def test_settings_that_came_later_leave_the_keys_of_older_results_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The figures in benchmarks/results stay at their addresses: this key is from before."""
    monkeypatch.setattr(METHODS["foul"].method, "version", 1)
    assert result_key(small_config(), "domain:east", "foul", OPTIONS) == "cdaf858c8d1b128a"


def test_a_new_version_of_a_method_has_new_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS["foul"].method, "version", METHODS["foul"].method.version + 1)
    assert result_key(small_config(), "domain:east", "foul", OPTIONS) != KEY
    assert result_key(small_config(), "domain:east", "measure", OPTIONS) != KEY


def test_without_a_backdoor_its_other_settings_decide_nothing() -> None:
    off = small_config(backdoor__share=0.1)
    assert result_key(off, "domain:east", "foul", OPTIONS) == KEY


def test_with_a_backdoor_all_of_it_decides() -> None:
    changes: list[dict[str, object]] = [{}, {"share": 0.1}, {"target": 1}, {"size": 5}]
    keys = {
        result_key(
            small_config(backdoor__clients=["east"], **{f"backdoor__{k}": v for k, v in c.items()}),
            "domain:east",
            "foul",
            OPTIONS,
        )
        for c in changes
    }
    assert len(keys | {KEY}) == 5


def test_another_request_method_or_option_makes_another_result() -> None:
    config = small_config()
    keys = {
        KEY,
        result_key(config, "domain:north", "foul", OPTIONS),
        result_key(config, "client:east-0", "foul", OPTIONS),
        result_key(config, "domain:east", "retrain", OPTIONS),
        result_key(config, "domain:east", "foul", OPTIONS | {"rounds": 2}),
        result_key(config, "domain:east", "foul", {}),
    }
    assert len(keys) == 6


@given(st.permutations(["rounds", "kappa", "rate"]))
def test_the_order_of_options_does_not_matter(names: list[str]) -> None:
    values = {"rounds": 1, "kappa": 2.0, "rate": 0.5}
    shuffled = {name: values[name] for name in names}
    key = result_key(small_config(), "domain:east", "foul", shuffled)
    assert key == result_key(small_config(), "domain:east", "foul", values)


def test_results_survive_without_their_bulk(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "store.json"
    store = ResultStore(file)
    assert store.get("a") is None
    assert not file.exists()
    figures = {"method": "foul", "fa": 0.1, "curve": [{"round": 0, "fa": 0.3}]}
    bulk = {"records": [{"round": 1}], "identity": "x", "model": "models/x.safetensors"}
    assert store.put("a", figures | bulk) == figures
    store.put("b", {"method": "retrain"})
    again = ResultStore(file)
    assert again.get("a") == store.get("a") == figures
    assert again.get("b") == {"method": "retrain"}
    assert again.get("c") is None
    again.put("a", {"method": "none"})
    assert json.loads(file.read_text()) == {"a": {"method": "none"}, "b": {"method": "retrain"}}
    assert [entry.name for entry in file.parent.iterdir()] == ["store.json"]


def test_a_broken_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text("{")
    with pytest.raises(UserError, match=r"store\.json"):
        ResultStore(tmp_path / "store.json")
