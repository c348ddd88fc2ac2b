import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factories import same_bits
from flwr.app import Context, RecordDict
from small_runs import small_config, without_times

from flower.fake_grid import FakeGrid, FakeNode
from foul import Config, FoulError, RunFolder, UserError, build_clients, learn, load_dataset
from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.config.load import config_to_toml
from foul.erasure.requests import file_request
from foul.erasure.run import run as erase
from foul.erasure.store import Store
from foul.federation.build import initial_network
from foul.flower.holdings import share_of
from foul.flower.job import Job, Outcome
from foul.flower.server_app import app
from foul.unlearning.stage import unlearn

Command = Callable[..., Outcome | None]


@pytest.fixture
def config() -> Config:
    return small_config(learning__rounds=2)


@pytest.fixture
def grid(config: Config, tmp_path: Path) -> FakeGrid:
    """A node for each client of the small setting, each with a network and a folder of its own."""
    data = load_dataset(config.data, config.seed)
    nodes = []
    for place, client in enumerate(build_clients(data, config.clients, config.seed)):
        net = initial_network(config.model_copy(update={"seed": 9}), 3, 16)
        features = FeatureStore(tmp_path / "nodes" / client.id)
        worker = Worker([client], net, features=features)
        nodes.append(FakeNode(place + 1, client.id, worker, share_of(config, client.id)))
    return FakeGrid(nodes)


@pytest.fixture
def command(grid: FakeGrid, config: Config, tmp_path: Path) -> Command:
    """Has the ServerApp perform a command and answers how it ended."""
    (tmp_path / "small.toml").write_text(config_to_toml(config))

    def perform(text: str, job: Job | None = None) -> Outcome | None:
        settings: dict[str, Any] = {"command": text, "cwd": str(tmp_path)}
        if job is not None:
            job.begin()
            settings["job"] = str(job.folder)
        app(grid, Context(1, 1, {}, RecordDict(), settings))  # type: ignore[arg-type]
        return job.outcome() if job else None

    return perform


@pytest.fixture(autouse=True)
def _back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The app goes to the command's folder; this brings the tests back.
    monkeypatch.chdir(tmp_path)


FOUR = "flower.clients=[north-0,north-1,east-0,east-1] flower.wait=1"


@pytest.mark.slow
@pytest.mark.parametrize("options", ["rounds=2 forget=bounded", "rounds=2"])
def test_learning_and_forgetting_end_with_the_bits_of_this_process(
    command: Command, config: Config, tmp_path: Path, options: str
) -> None:
    command(f"learn small.toml {FOUR} --out there -q")
    command(f"unlearn there --forget client:north-1 {options} -q")
    here = learn(config, tmp_path / "here")
    unlearn(here.path, "client:north-1", overrides=options.split())
    there = RunFolder.open(tmp_path / "there")
    for model in ("learned", "foul-client-north-1"):
        assert same_bits(here.load_model(model)[0], there.load_model(model)[0])
    assert without_times(there) == without_times(here)
    costs = [folder.summary()["costs"]["learning"] for folder in (here, there)]
    assert costs[0]["bytes_down"] == costs[1]["bytes_down"]
    assert there.config().engine == "flower"


def test_only_the_scope_travels_while_foul_forgets(
    command: Command, grid: FakeGrid, tmp_path: Path
) -> None:
    command(f"learn small.toml {FOUR} --out run -q")
    grid.sent.clear()
    # Who steps aside is also sent where to, once.
    command("unlearn run --forget client:north-1 rounds=2 aside=0 -q")
    sent = [m for m in grid.sent if _task(m) == "unlearn"]
    assert len(sent) >= 2 * 4
    learned = RunFolder.open(tmp_path / "run").load_model()[0]
    scope = sum(t.nbytes for n, t in learned.items() if n.split(".")[0] in ("V", "head"))
    for message in sent:
        assert len(message.content["tensors"]["tensors"].data) < 1.5 * scope + 4000  # type: ignore[union-attr]


def _task(message: Any) -> str:
    return str(json.loads(message.content["header"]["header"])["task"])


def test_a_client_that_left_is_named_and_the_run_goes_on(
    command: Command, grid: FakeGrid, tmp_path: Path
) -> None:
    command(f"learn small.toml {FOUR} --out run -q learning.rounds=1")
    del grid.online[1]
    command("unlearn run --forget client:north-1 rounds=1 -q flower.wait=0")
    records = RunFolder.open(tmp_path / "run")
    saved = json.loads(records.results_file.read_text())
    assert saved[0]["records"][0]["failures"] == {"north-0": "not connected"}


def test_below_the_quorum_it_stops_and_resumes(
    command: Command, grid: FakeGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.flower.engine.GRACE", 0.0)
    job = Job.of(tmp_path / "run")
    for node in (1, 2, 3):
        grid.online[node].answer = lambda _: None
    with pytest.raises(Exception, match="quorum"):
        command(f"learn small.toml {FOUR} flower.deadline=1 --out run", job)
    outcome = job.outcome()
    assert outcome is not None
    assert outcome.code == 1
    assert "1 of 4 clients answered" in outcome.error
    for node in (1, 2, 3):
        grid.online[node].answer = None
    assert command("learn --resume --out run", job) == Outcome(0)
    assert RunFolder.open(tmp_path / "run").learned()


def test_whoever_waits_gets_progress_and_output(command: Command, tmp_path: Path) -> None:
    job = Job.of(tmp_path / "run")
    assert command(f"learn small.toml {FOUR} --out run --json", job) == Outcome(0)
    assert json.loads(job.output())["rounds"] == 2
    calls = [json.loads(line) for line in (job.folder / "progress.jsonl").read_text().splitlines()]
    assert [c[1]["round"] for c in calls if c[0] == "on_round"] == [1, 2]


def test_a_study_runs_on_the_nodes(command: Command, grid: FakeGrid, tmp_path: Path) -> None:
    command(
        f"run small.toml {FOUR} learning.rounds=1 --methods none --forget client:north-1 "
        "--out study -q"
    )
    results = json.loads((tmp_path / "study" / "results.json").read_text())
    assert [result["method"] for result in results] == ["none"]
    assert (tmp_path / "study" / "report.html").is_file()
    # Single images stay where they are.
    assert not {"reconstruct", "latents"} & {_task(message) for message in grid.sent}
    with pytest.raises(UserError, match="Pictures show clients' images"):
        command("evaluate study --parts pictures -q")


def test_models_are_evaluated_on_the_nodes(
    command: Command, grid: FakeGrid, tmp_path: Path
) -> None:
    command(f"learn small.toml {FOUR} learning.rounds=1 --out run -q")
    command("unlearn run --forget client:north-1 rounds=1 -q")
    grid.sent.clear()
    command("evaluate run --parts forgetting -q")
    assert grid.sent


@pytest.mark.slow
def test_every_method_runs_on_the_nodes(command: Command, tmp_path: Path) -> None:
    job = Job.of(tmp_path / "study")
    more = "learning.rounds=1 federation.history=clients --forget client:north-1 --out study"
    assert command(f"compare small.toml {FOUR} {more} --json", job) == Outcome(0)
    assert "failed:" not in (job.folder / "progress.jsonl").read_text()
    assert len(json.loads(job.output())) > 10


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no command for a ServerApp"),
        ("export run", "no command for a ServerApp"),
        ("learn small.toml --nonsense", "nonsense"),
        ("learn missing.toml --out run", "missing.toml"),
    ],
)
def test_a_wrong_command_is_the_users_error(
    command: Command, tmp_path: Path, text: str, told: str
) -> None:
    job = Job.of(tmp_path / "run")
    with pytest.raises(UserError, match=told):
        command(text, job)
    outcome = job.outcome()
    assert outcome is not None
    assert outcome.code == 2
    assert told in outcome.error


def test_an_unexpected_failure_is_told_too(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("foul.cli.learn.run_learning", broken)
    job = Job.of(tmp_path / "run")
    with pytest.raises(ZeroDivisionError):
        command(f"learn small.toml {FOUR} --out run", job)
    outcome = job.outcome()
    assert outcome is not None
    assert outcome.code == 1
    assert "ZeroDivisionError: by nothing" in outcome.error


def test_an_erasure_at_nodes_ends_with_the_version_of_this_process(
    command: Command, config: Config, tmp_path: Path
) -> None:
    command(f"learn small.toml {FOUR} --out there -q")
    learn(config, tmp_path / "here")
    stores = [Store.open(tmp_path / name) for name in ("here", "there")]
    for store in stores:
        policy = "[accept]\nmia_auc_high = 1.0\nmia_auc_low = 0.0\nforget_gap = 1.0\n"
        (store.path / "policy.toml").write_text(
            f"{policy}retain_loss = 1.0\nretain_test_loss = 1.0\n"
        )
        file_request(store, "client:north-1")
    command("erase run there 1 rounds=1 -m not -q")
    erase(stores[0], [1], "not", ["rounds=1"])
    here, there = (store.state() for store in stores)
    assert there.requests[1].state == "done"
    assert there.current.hash == here.current.hash == stores[1].service_hash()
    assert there.jobs[1].evidence == here.jobs[1].evidence
    # Its node is still there, and nobody asks it.
    command("erase relearn there --rounds 1 -q")
    assert stores[1].state().current.traces["north-1"] == "unlearned"
    assert "north-1" not in stores[1].entries()[-1].body["participation"]
    command("erase verify there 1 -q")
    assert [entry.kind for entry in stores[1].entries()][-2:] == ["verified", "issued"]
    # What fails without an exception fails there too.
    job = Job.of(tmp_path / "there")
    strict = "[accept]\nmia_auc_high = 0.5\nmia_auc_low = 0.5\n"
    (stores[1].path / "policy.toml").write_text(strict)
    with pytest.raises(FoulError, match="exit code 2"):
        command("erase verify there 1 -q", job)
    assert job.outcome() == Outcome(2)
    assert "The policy is not met." in job.output()
