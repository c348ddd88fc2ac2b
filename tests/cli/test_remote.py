from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Foul
from foul import FoulError, RunFolder
from foul.cli import remote


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], Path, Any]]:
    """What is handed over to a ServerApp, which answers 'done'."""
    calls: list[tuple[list[str], Path, Any]] = []

    def perform(arguments: list[str], run: Path, config: Any, observer: object) -> tuple[str, int]:
        calls.append((list(arguments), run, config))
        return "done\n", 0

    monkeypatch.setattr(remote, "perform_remotely", perform)
    return calls


Handed = list[tuple[list[str], Path, Any]]


@pytest.mark.parametrize("verb", ["learn", "run", "compare"])
def test_verbs_with_a_configuration_are_handed_over(
    verb: str, foul: Foul, handed: Handed, small: Path, tmp_path: Path
) -> None:
    told = foul(verb, small, "engine=flower", "flower.deadline=9", "--out", tmp_path / "x")
    assert told.out == "done\n"
    (arguments, run, config), *rest = handed
    assert arguments[0] == verb
    assert "engine=flower" in arguments
    assert run == tmp_path / "x"
    assert config.deadline == 9
    assert rest == []
    assert not (tmp_path / "x").exists()


def test_unlearning_is_handed_over_with_its_options(
    foul: Foul, handed: Handed, finished: RunFolder
) -> None:
    told = foul(
        "unlearn",
        finished.path,
        "engine=flower",
        "rounds=2",
        "flower.wait=3",
        "-f",
        "client:east-0",
    )
    assert told.out == "done\n"
    assert handed[0][1] == finished.path
    assert handed[0][2].wait == 3


def test_evaluation_is_handed_over(foul: Foul, handed: Handed, finished: RunFolder) -> None:
    assert foul("evaluate", finished.path, "engine=flower").out == "done\n"
    assert handed[0][0] == ["evaluate", str(finished.path), "engine=flower"]


def test_evaluation_has_no_other_settings(foul: Foul, finished: RunFolder) -> None:
    assert (
        "'rounds=3' is no setting of the machine"
        in foul("evaluate", finished.path, "rounds=3").error()
    )


def test_the_machine_of_a_run_can_be_chosen_anew(
    foul: Foul, finished: RunFolder, handed: Handed
) -> None:
    config, rest = remote.on_machine(finished, ["device=cpu", "rounds=3", "flower.wait=1"])
    assert (config.device, config.flower.wait, rest) == ("cpu", 1, ["rounds=3"])


def test_a_failure_there_is_a_failure_here(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        error = FoulError("The quorum is 3")
        error.exit_code = 1
        raise error

    monkeypatch.setattr(remote, "perform_remotely", fail)
    told = foul("learn", small, "engine=flower", "--out", tmp_path / "x")
    assert told.error(1) == "foul: The quorum is 3"


def test_a_command_that_printed_and_failed_there_does_both_here(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "perform_remotely", lambda *_: ("The policy is not met.\n", 2))
    told = foul("learn", small, "engine=flower", "--out", tmp_path / "x")
    assert (told.out, told.code) == ("The policy is not met.\n", 2)


def test_without_flower_there_is_one_clear_line(
    foul: Foul, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.flower.driver.find_spec", lambda name: None)
    told = foul("learn", small, "engine=flower", "--out", tmp_path / "x").error()
    assert "pip install 'foul[flower]'" in told


def test_a_simulation_is_this_process_own(
    foul: Foul, handed: Handed, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.flower.connect.find_spec", lambda name: None)
    told = foul("learn", small, "engine=flower-sim", "--out", tmp_path / "x")
    assert "pip install 'foul[simulation]'" in told.error()
    assert handed == []
