"""`foul federation` and `foul flower`: what is said about mistakes, and what is printed."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan

from .conftest import Foul

pytest.importorskip("flwr", reason="needs foul[flower]")


@pytest.fixture
def place() -> Iterator[Path]:
    """Not pytest's own: sockets need short paths."""
    with TemporaryDirectory(prefix="foul-") as path:
        yield Path(path) / "fed"


def prepared(foul: Foul, small: Path, place: Path, *arguments: object) -> FederationFolder:
    """A server with two nodes that was never started."""
    outcome = foul(
        *("federation", "up", small, "--clients", 2, "--dir", place, "--port", 0),
        *("--no-start", *arguments),
    )
    assert outcome.code == 0, outcome.err
    return FederationFolder.open(place)


def test_prepared_only_nothing_runs(foul: Foul, small: Path, place: Path) -> None:
    folder = prepared(foul, small, place)
    assert Plan.read(folder.plan).clients == ("north-0", "east-0")
    found = foul("federation", "status", "--dir", place, "--json").json
    assert found["up"] is False
    assert found["superlink_answers"] is False
    assert {process["state"] for process in found["processes"]} == {"stopped"}
    assert [process["name"] for process in found["processes"]][:4] == [
        *("supervisor", "superlink", "superexec", "proxy")
    ]
    shown = foul("federation", "status", "--dir", place).out
    assert "The SuperLink does not answer." in shown


def test_down_without_up_says_so(foul: Foul, small: Path, place: Path) -> None:
    assert "holds no federation" in foul("federation", "down", "--dir", place).error()
    prepared(foul, small, place)
    assert foul("federation", "down", "--dir", place).out == f"Nothing runs in {place}.\n"


def test_a_number_that_went_to_another_process_is_not_stopped(
    foul: Foul, small: Path, place: Path
) -> None:
    folder = prepared(foul, small, place)
    # After a crash and a restart of the machine, numbers mean other processes.
    notes = {"supervisor": {"pid": 1, "started": 1}, "superlink": {"pid": 1, "started": 1}}
    folder.state.write_text(json.dumps(notes))
    assert "Nothing runs" in foul("federation", "down", "--dir", place).out
    assert not folder.state.exists()


def test_more_clients_than_there_are(foul: Foul, small: Path, place: Path) -> None:
    outcome = foul("federation", "up", small, "--clients", 9, "--dir", place)
    assert "--clients 9: the configuration has 4 clients" in outcome.error()
    assert not place.exists()


def test_a_taken_port(foul: Foul, small: Path, place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        outcome = foul("federation", "up", small, "--clients", 1, "--dir", place, "--port", port)
    assert f"Port {port} of 127.0.0.1 cannot be used" in outcome.error()
    assert not place.exists()


def test_a_folder_in_use(foul: Foul, small: Path, place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").touch()
    outcome = foul("federation", "up", small, "--clients", 1, "--dir", place, "--port", 0)
    assert "is not empty and holds no federation" in outcome.error()


@pytest.mark.parametrize(
    "other", [["--clients", 3], ["--client", "north-1"], ["seed=1", "--clients", 2]]
)
def test_a_folder_of_another_federation(
    foul: Foul, small: Path, place: Path, other: list[object]
) -> None:
    prepared(foul, small, place)
    outcome = foul("federation", "up", small, *other, "--dir", place, "--no-start")
    assert "holds another federation (2 clients here)" in outcome.error()
    assert foul("federation", "up", "--dir", place, "--no-start").code == 0
    assert foul("federation", "up", small, "--clients", 2, "--dir", place, "--no-start").code == 0


def test_without_the_extra(
    foul: Foul, small: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = foul("federation", "up", small, "--dir", place)
    assert "pip install 'foul[flower]'" in outcome.error()


def test_a_site_belongs_to_one_server_and_client(foul: Foul, small: Path, place: Path) -> None:
    server = prepared(foul, small, place)
    site = place.parent / "site"
    base = ["federation", "join", "fl.example.org:1", small, "--dir", site, "--no-start"]
    assert "needs --client and --ca" in foul(*base).error()
    joined = [*base, "--client", "clinic-3", "--ca", server.authority]
    assert foul(*joined).code == 0
    assert foul(*joined).code == 0
    other = foul("federation", "join", "fl.example.org:2", "--dir", site, "--no-start")
    assert "is the site of clinic-3 at fl.example.org:1" in other.error()
    again = foul(*base, "--client", "clinic-4", "--ca", server.authority)
    assert "is the site of clinic-3" in again.error()
    # Both verbs have the same default folder.
    door = Plan.read(server.plan).door
    for address in (door, "fl.example.org:1"):
        there = foul("federation", "join", address, "--dir", place, "--no-start")
        assert "is a server's folder" in there.error()


def test_a_site_is_asked_nothing_about_the_federation(foul: Foul, small: Path, place: Path) -> None:
    server = prepared(foul, small, place)
    site = place.parent / "site"
    foul(
        *("federation", "join", "fl.example.org:1", small, "--dir", site, "--no-start"),
        *("--client", "clinic-3", "--ca", server.authority),
    )
    key = FederationFolder.open(site).key("clinic-3").with_suffix(".pub")
    outcome = foul("federation", "register", "clinic-3", key, "--dir", site)
    assert "is a site; its server is fl.example.org:1" in outcome.error()
    found = foul("federation", "status", "--dir", site, "--json").json
    assert found["role"] == "site"
    assert found["superlink_answers"] is None


def test_a_key_that_is_not_there(foul: Foul, small: Path, place: Path) -> None:
    prepared(foul, small, place)
    outcome = foul("federation", "register", "clinic-3", place / "none.pub", "--dir", place)
    assert "none.pub is not there" in outcome.error()


def test_logs_show_the_end_without_colours(foul: Foul, small: Path, place: Path) -> None:
    folder = prepared(foul, small, place)
    folder.log("superlink").write_text("".join(f"\x1b[92mline {n}\x1b[0m\n" for n in range(100)))
    outcome = foul("federation", "logs", "superlink", "-n", 2, "--dir", place)
    assert outcome.out == "line 98\nline 99\n"
    assert foul("federation", "logs", "proxy", "--dir", place).out == ""
    wrong = foul("federation", "logs", "superlnk", "--dir", place)
    assert "Did you mean 'superlink'?" in wrong.error()


def test_commands_units_and_nginx_are_printed(foul: Foul, small: Path, place: Path) -> None:
    prepared(foul, small, place)
    commands = foul("federation", "commands", "--dir", place).out
    assert commands.count("flower-supernode") == 2
    assert "[Service]" in foul("federation", "commands", "--systemd", "--dir", place).out
    block = foul("federation", "commands", "--nginx", "fl.example.org", "--dir", place).out
    assert "server_name fl.example.org;" in block


def test_flower_init_writes_an_app_once(foul: Foul, tmp_path: Path) -> None:
    app = tmp_path / "app"
    assert "flwr run" in foul("flower", "init", app).out
    assert (app / "pyproject.toml").is_file()
    assert "is not empty" in foul("flower", "init", app).error()


def test_a_certificate_is_renewed_while_nothing_runs(foul: Foul, small: Path, place: Path) -> None:
    folder = prepared(foul, small, place, "--name", "fl.example.org")
    before = (folder.certificates / "server.crt").read_bytes()
    until = foul("federation", "status", "--dir", place, "--json").json["certificate_until"]
    assert until in foul("federation", "renew", "--dir", place).out
    assert (folder.certificates / "server.crt").read_bytes() != before


def test_a_superlink_that_never_ran_has_nothing_to_purge(
    foul: Foul, small: Path, place: Path
) -> None:
    prepared(foul, small, place)
    assert "superlink.db is not there" in foul("federation", "purge", "--dir", place).error()
