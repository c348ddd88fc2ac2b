"""The plan says what is reachable from where, and survives its file."""

import tomllib
from pathlib import Path

import pytest

from foul.deploy.folder import FederationFolder
from foul.deploy.plan import (
    Plan,
    Process,
    driver_config,
    driver_environment,
    plan_server,
    plan_site,
)

FOLDER = FederationFolder(Path("/srv/fed"))


@pytest.fixture
def server() -> Plan:
    return plan_server(
        FOLDER, ["north-0", "east-0"], "0.0.0.0", [9000, 9001, 9002, 9003], {"A": "b"}
    )


def option(process: Process, name: str) -> str:
    return process.command[process.command.index(name) + 1]


def named(plan: Plan, name: str) -> Process:
    return next(process for process in plan.processes if process.name == name)


def test_only_the_proxy_listens_beyond_this_machine(server: Plan) -> None:
    hosts = {p.name: option(p, "--host") for p in server.processes if p.port is not None}
    assert hosts.pop("proxy") == "0.0.0.0"
    assert set(hosts) == {"superlink", "supernode-north-0", "supernode-east-0"}
    assert set(hosts.values()) == {"127.0.0.1"}


def test_the_superlink_demands_keys_and_a_secret(server: Plan) -> None:
    command = named(server, "superlink").command
    assert "--enable-supernode-auth" in command
    assert "--insecure" not in command
    assert "--disable-runtime-dependency-installation" in command
    link, executor = named(server, "superlink"), named(server, "superexec")
    assert option(link, "--isolation") == "process"
    secret = option(link, "--superexec-auth-secret-file")
    assert secret == option(executor, "--superexec-auth-secret-file") == str(FOLDER.secret)


def test_nodes_come_through_the_proxy_with_their_own_key(server: Plan) -> None:
    node = named(server, "supernode-east-0")
    assert option(node, "--superlink") == "127.0.0.1:9000" == server.door
    assert option(node, "--auth-supernode-private-key") == "/srv/fed/nodes/east-0/key"
    assert option(node, "--root-certificates") == "/srv/fed/certs/ca.crt"
    assert node.waits_for == "/srv/fed/nodes/east-0/registered"
    settings = tomllib.loads(option(node, "--node-config").replace('" ', '"\n'))
    worker = named(server, "worker-east-0")
    assert settings == {
        "client-id": option(worker, "--client"),
        "worker-socket": option(worker, "--socket"),
    }


def test_every_process_is_quiet_and_has_what_was_asked(server: Plan) -> None:
    for process in server.processes:
        assert process.environment["FLWR_TELEMETRY_ENABLED"] == "0"
        assert process.environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"
        assert process.environment["A"] == "b"
    homes = {p.environment.get("FLWR_HOME") for p in server.processes if "supernode" in p.name}
    assert homes == {"/srv/fed/nodes/north-0/flwr", "/srv/fed/nodes/east-0/flwr"}


def test_nodes_stop_before_workers_and_the_superlink_last(server: Plan) -> None:
    ranks = {p.name.partition("-")[0]: p.rank for p in server.processes}
    order = sorted(ranks, key=ranks.__getitem__, reverse=True)
    assert order == ["supernode", "worker", "proxy", "superexec", "superlink"]


def test_a_site_has_no_superlink_and_waits_for_nothing() -> None:
    plan = plan_site(FOLDER, "clinic-3", "fl.example.org:9000", 9005, ["--data", "/scans"], {})
    assert plan.superlink is None
    assert [p.name for p in plan.processes] == ["worker-clinic-3", "supernode-clinic-3"]
    assert option(plan.processes[0], "--data") == "/scans"
    assert option(plan.processes[1], "--superlink") == "fl.example.org:9000"
    assert plan.processes[1].waits_for is None


def test_a_plan_is_read_as_it_was_written(server: Plan, tmp_path: Path) -> None:
    server.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == server


def test_drivers_reach_the_superlink_on_this_machine(server: Plan) -> None:
    found = tomllib.loads(driver_config(FOLDER, server))["superlink"]
    assert found["default"] == "foul"
    assert found["foul"] == {
        "address": "127.0.0.1:9001",
        "root-certificates": "/srv/fed/certs/ca.crt",
    }
    assert driver_environment(FOLDER)["FLWR_HOME"] == "/srv/fed/flwr"


@pytest.mark.parametrize(
    ("host", "door"),
    [("0.0.0.0", "127.0.0.1:1"), ("::", "[::1]:1"), ("::1", "[::1]:1"), ("a.org", "a.org:1")],
)
def test_nodes_on_the_server_find_it_wherever_it_listens(host: str, door: str) -> None:
    assert plan_server(FOLDER, [], host, [1, 2], {}).door == door
