import json
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from small_runs import small_config, without_times

from flower.fake_grid import FakeGrid
from foul import Config, MachineError, RunFolder, learn
from foul.config.load import config_to_toml
from foul.federation.build import build
from foul.federation.federation import misfit
from foul.flower import connect, simulation
from foul.flower.simulation import SimulationEngine
from foul.unlearning.stage import unlearn

NAMES = ["east-0", "east-1", "north-0", "north-1"]


class VirtualGrid(FakeGrid):
    """Nodes of a simulation: without names, told apart by their partition."""

    def __init__(self, app: ClientApp, nodes: int) -> None:
        super().__init__([])
        self._app, self._nodes = app, nodes

    def get_nodes(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=7 + n, name="") for n in range(self._nodes)]

    def _push(self, message: Message) -> str:
        number = message.metadata.dst_node_id - 7
        context = Context(1, number, {"partition-id": number}, RecordDict(), {})
        self._waiting[str(number)] = (0.0, self._app(message, context))
        return str(number)


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A simulation that calls the apps in this process."""

    def run(server: ServerApp, app: ClientApp, nodes: int, **_: Any) -> None:
        server(VirtualGrid(app, nodes), Context(1, 1, {}, RecordDict(), {}))  # type: ignore[arg-type]

    def use(instead: Callable[..., None] = run) -> None:
        monkeypatch.setattr(simulation, "run_simulation", instead)
        monkeypatch.setattr(connect, "find_spec", lambda name: name)

    return use


def simulated(**changes: object) -> Config:
    return small_config(engine="flower-sim", **changes)


def require_equal(here: RunFolder, there: RunFolder, model: str) -> None:
    one, other = here.load_model(model)[0], there.load_model(model)[0]
    assert not misfit(one, other)
    assert max(float((one[name] - other[name]).abs().max()) for name in one) <= 1e-5


def without_seconds(costs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        stage: {what: cost for what, cost in found.items() if what != "seconds"}
        for stage, found in costs.items()
    }


def test_learning_ends_as_in_one_process(without_ray: Callable[..., None], tmp_path: Path) -> None:
    without_ray()
    here = learn(small_config(learning__rounds=1), tmp_path / "here")
    there = learn(simulated(learning__rounds=1), tmp_path / "there")
    require_equal(here, there, "learned")
    assert without_times(there) == without_times(here)
    costs = [without_seconds(folder.summary()["costs"]) for folder in (here, there)]
    assert costs[0] == costs[1]
    assert "simulation" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("ray"), reason="needs Ray: pip install 'foul[simulation]'")
def test_on_ray_learning_and_forgetting_end_as_in_one_process(tmp_path: Path) -> None:
    here = learn(small_config(learning__rounds=2), tmp_path / "here")
    unlearn(here.path, "client:north-1", overrides=["rounds=2"])
    (tmp_path / "sim.toml").write_text(config_to_toml(simulated(learning__rounds=2, workers=2)))
    # As commands: Ray leaves files open, which would be warnings here.
    for words in ("learn sim.toml --out there -q", "unlearn there -f client:north-1 rounds=2 -q"):
        command = [sys.executable, "-m", "foul", *words.split()]
        told = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1800
        )
        assert told.returncode == 0, told.stderr
    there = RunFolder.open(tmp_path / "there")
    for model in ("learned", "foul-client-north-1"):
        require_equal(here, there, model)
    assert without_times(there) == without_times(here)
    forgetting = [json.loads(folder.results_file.read_text())[0] for folder in (here, there)]
    for one, other in zip(*(result["records"] for result in forgetting), strict=True):
        assert one["failures"] == other["failures"] == {}
        assert without_seconds(one["costs"]) == without_seconds(other["costs"])


def test_every_client_is_a_node(without_ray: Callable[..., None]) -> None:
    without_ray()
    setting = build(simulated())
    try:
        assert isinstance(setting.federation.engine, SimulationEngine)
        assert [client.id for client in setting.federation.clients] == NAMES
    finally:
        setting.federation.engine.close()


def test_a_round_has_as_long_as_all_its_clients_one_after_the_other(
    without_ray: Callable[..., None],
) -> None:
    without_ray()
    engine = SimulationEngine(simulated(flower__deadline=50), NAMES, None, 1)
    try:
        assert engine._deadline == 200
    finally:
        engine.close()


def test_a_simulation_that_does_not_start_is_an_error_with_its_reason(
    without_ray: Callable[..., None],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("ended") from ValueError("no room for Ray")

    without_ray(broken)
    with pytest.raises(MachineError, match=r"simulation ended \(no room for Ray\).*logs"):
        build(simulated())


def test_a_simulation_that_ends_while_somebody_waits_is_an_error(
    without_ray: Callable[..., None],
) -> None:
    def deaf(server: ServerApp, app: ClientApp, nodes: int, **_: Any) -> None:
        grid = VirtualGrid(app, nodes)
        grid.push_messages = lambda messages: [str(n) for n, _ in enumerate(messages)]  # type: ignore[method-assign]
        context = Context(1, 1, {}, RecordDict(), {})
        threading.Thread(target=server, args=(grid, context), daemon=True).start()

    without_ray(deaf)
    with pytest.raises(MachineError, match="nobody says why"):
        build(simulated())
