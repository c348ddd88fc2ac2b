import re
from typing import Any

import pytest

from foul import UserError
from foul.erasure.plan import Planner, cheaper_together, plan_request
from foul.erasure.requests import file_request, withdraw
from foul.erasure.store import Store
from foul.unlearning.stage import unlearn

from .conftest import MakeStore


def offers(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {offer["method"]: offer for offer in plan["methods"]}


def test_a_plan_changes_nothing_but_the_state(store: Store) -> None:
    file_request(store, "client:north-1")
    before = {f: f.read_bytes() for f in store.folder.path.rglob("*") if f.is_file()}
    plan = plan_request(store, 1)
    after = {f: f.read_bytes() for f in store.folder.path.rglob("*") if f.is_file()}
    assert {f.name for f in before if before[f] != after.get(f)} == {"ledger.sqlite"}
    assert set(after) == set(before)
    request = store.state().requests[1]
    assert (request.state, request.plan) == ("planned", plan)
    assert plan["clients"] == ["north-1"]
    assert plan["hash"] == store.state().current.hash


def test_every_method_says_what_it_takes_or_why_it_cannot(store: Store) -> None:
    file_request(store, "domain:north")
    found = offers(plan_request(store, 1))
    assert {"retrain", "not", "foul", "fedosd", "fedrecovery", "fats"} <= set(found)
    assert not {"none", "continue", "retrain-matched"} & set(found)
    assert found["fedrecovery"]["why_not"].startswith("no sum of contributions of exactly")
    for offer in found.values():
        assert offer["usable"] is (offer["why_not"] == "")
        if offer["usable"]:
            assert offer["within"] >= 1
            assert offer["disk"] > 0
    assert found["retrain"]["exact"]
    assert not found["foul"]["exact"]


def test_what_the_run_kept_opens_methods(store: Store) -> None:
    file_request(store, "client:north-1")
    assert offers(plan_request(store, 1))["fedrecovery"]["usable"]
    withdraw(store, 1)
    file_request(store, "client:north-1", departed=True)
    gone = offers(plan_request(store, 2))
    assert gone["foul"]["options"] == ["departed=true"]
    assert gone["foul"]["usable"]
    assert "out of reach" in gone["fedosd"]["why_not"]
    # It would learn with everybody first.
    assert "out of reach" in gone["fats"]["why_not"]
    (store.folder.deltas / "north-1.safetensors").unlink()
    store.folder.history_file.unlink()
    gone = offers(plan_request(store, 2))
    assert "no stored update of north-1" in gone["foul"]["why_not"]
    assert not gone["fedrecovery"]["usable"]
    assert gone["retrain"]["usable"]


@pytest.mark.parametrize(
    ("prefer", "chosen", "reason"),
    [
        (["fedosd", "retrain"], "retrain", "exact, and no dearer than fedosd"),
        (["fedosd"], "fedosd", r"the first of fedosd .* % of the traffic of retraining"),
        (["retrain", "foul"], "retrain", "exact: the new model never saw them"),
    ],
)
def test_the_recommendation_has_its_reason(
    make_store: MakeStore, prefer: list[str], chosen: str, reason: str
) -> None:
    store = make_store(f"[methods]\nprefer = {prefer}")
    file_request(store, "client:north-1")
    plan = plan_request(store, 1)
    assert plan["recommended"] == chosen
    assert re.search(reason, plan["reason"])


@pytest.mark.parametrize(
    ("prefer", "told"),
    [(["fool"], "no method 'fool'.*foul"), (["fedrecovery"], "None of fedrecovery can serve")],
)
def test_a_preference_that_cannot_be_met(
    make_store: MakeStore, prefer: list[str], told: str
) -> None:
    store = make_store(f"[methods]\nprefer = {prefer}")
    file_request(store, "domain:north")
    with pytest.raises(UserError, match=told):
        plan_request(store, 1)


def test_what_will_go_and_what_stays(make_store: MakeStore) -> None:
    store = make_store("[purge]\ncheckpoints = 'keep'\nold_model = 'keep'\nhistory = 'others'")
    unlearn(store.folder.path, "client:east-0", "retrain", ["rounds=1"])
    file_request(store, "client:north-1")
    how = {item["path"]: item["how"] for item in plan_request(store, 1)["purge"]}
    assert how["deltas/north-1.safetensors"] == "delete"
    assert "deltas/north-0.safetensors" not in how
    assert how["models/retrain-client-east-0.safetensors"] == "delete"
    assert how["evaluation/retrain-client-east-0.json"] == how["results.json"] == "delete"
    assert how["models/learned.safetensors"] == how["checkpoints/round-00002.safetensors"] == "keep"
    assert how["history.safetensors"] == how["rounds.jsonl"] == how["run.json"] == "rewrite"


def test_serving_together_is_cheaper_but_never_for_everybody(store: Store) -> None:
    for forget in ("client:north-0", "client:east-0", "domain:north", "domain:east"):
        file_request(store, forget)
    state = store.state()
    planner, requests = Planner(store, state), list(state.requests.values())
    assert cheaper_together(planner, state, requests[:2], "retrain")
    assert not cheaper_together(planner, state, requests[2:], "retrain")
    plan = plan_request(store, 1)
    assert plan["together"] == {"requests": ["R-0002", "R-0003", "R-0004"], "cheaper": False}


def test_only_what_waits_can_be_planned(served: Store) -> None:
    with pytest.raises(UserError, match="R-0001 is done; there is nothing to plan"):
        plan_request(served, 1)


def test_a_request_that_is_withdrawn_while_its_plan_is_made_stays_withdrawn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_request(store, "client:north-1")

    def slow(*_: object) -> dict[str, Any]:
        withdraw(store, 1)
        return {}

    monkeypatch.setattr("foul.erasure.plan.make_plan", slow)
    with pytest.raises(UserError, match="R-0001 is withdrawn; there is nothing to plan"):
        plan_request(store, 1)
    assert store.state().requests[1].state == "withdrawn"
