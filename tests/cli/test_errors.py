"""Bad input: one line on standard error with the thing and the remedy, nothing left behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import foul.cli.doctor as doctor_module
from foul import __version__

from .conftest import Foul

COMMANDS = [
    (),
    ("run",),
    ("learn",),
    ("unlearn",),
    ("methods",),
    ("compare",),
    ("evaluate",),
    ("report",),
    ("ulira",),
    ("info",),
    ("export",),
    ("predict",),
    ("doctor",),
    ("data",),
    ("data", "list"),
    ("data", "check"),
    ("data", "prepare"),
    ("config",),
    ("config", "list"),
    ("config", "show"),
    ("config", "schema"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself(foul: Foul, command: tuple[str, ...], option: str) -> None:
    outcome = foul(*command, option)
    assert outcome.code == 0
    assert f"Usage: foul {' '.join(command)}".rstrip() in outcome.out
    assert outcome.err == ""


def test_the_help_teaches(foul: Foul) -> None:
    out = foul("--help").out
    for text in ("foul run digits --out runs/first", "ROOT/DOMAIN/CLASS", "foul config schema"):
        assert text in out
    assert "--resume" in foul("learn", "--help").out


def test_the_version(foul: Foul) -> None:
    assert foul("--version").out == f"foul {__version__}\n"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["clients.per_domain=0"], "clients.per_domain=0: input should be greater than or equal"),
        (["learning.l2u.mid_rate=-1"], "learning.l2u.mid_rate=-1"),
        (["learning.l2u.mid_rate=inf"], "learning.l2u.mid_rate=inf"),
        (["learning.rounds=many"], "learning.rounds='many'"),
        (["learning.ronds=3"], "Unknown key 'learning.ronds'. Did you mean 'learning.rounds'?"),
        (["rounds=3"], "Unknown key 'rounds'. Did you mean 'learning.rounds'?"),
        (["model.split=3"], "split=3 leaves no stage of tiny for K and V; use at most 1"),
        (["clients.per_domain=61"], "Domain 'north' has 60"),
        (["data.name=synthetik"], "Did you mean 'synthetic'?"),
        (["data.domains=[nort]"], "no domain 'nort' in the data. Did you mean 'north'?"),
        (["device=gpu"], "device='gpu' is not possible. Allowed: `auto`, `cpu`"),
        (["workers=2", "threads=2"], "workers=2 cannot have threads=2"),
        (["model.weights=nowhere.pth"], "nowhere.pth"),
        (["nonsense"], "'nonsense' is not key=value"),
    ],
)
def test_impossible_settings(
    foul: Foul, small: Path, tmp_path: Path, overrides: list[str], message: str
) -> None:
    outcome = foul("learn", small, *overrides, "--out", tmp_path / "run")
    assert message in outcome.error()
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there(foul: Foul, small: Path, tmp_path: Path) -> None:
    line = foul("learn", small, "device=cuda", "--out", tmp_path / "run").error()
    assert "device=cuda is not available here. Use device=cpu or device=auto." in line
    assert list(tmp_path.iterdir()) == []


def test_configurations_that_are_none(foul: Foul, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[learning\nrounds = 3")
    line = foul("learn", tmp_path / "broken.toml").error()
    assert f"{tmp_path / 'broken.toml'} is not valid TOML" in line
    assert "'digts' is neither a file" in foul("learn", "digts").error()


def break_nothing(root: Path) -> None:
    """The folder is as it should be."""


def make_empty(root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()


def empty_class(root: Path) -> None:
    for file in (root / "oil" / "night").iterdir():
        file.unlink()


def corrupt(root: Path) -> None:
    file = root / "ink" / "day" / "5.png"
    file.write_bytes(file.read_bytes()[:60])


def no_classes(root: Path) -> None:
    for file in (root / "ink" / "day").iterdir():
        file.rename(root / file.name)
    for domain in ("ink", "oil"):
        shutil.rmtree(root / domain)


@pytest.mark.parametrize(
    ("damage", "overrides", "message"),
    [
        (shutil.rmtree, [], "There is nothing at"),
        (make_empty, [], "own"),
        (empty_class, [], "'night'"),
        (corrupt, [], "ink/day/5.png cannot be decoded"),
        (no_classes, [], "ROOT/DOMAIN/CLASS"),
        (break_nothing, ["clients.per_domain=20"], "Domain 'ink' has 19"),
        (break_nothing, ["data.name=pacs"], "PACS has a domain"),
    ],
)
def test_data_that_cannot_be_used_leaves_no_run(
    foul: Foul,
    small: Path,
    own_images: Path,
    tmp_path: Path,
    damage: object,
    overrides: list[str],
    message: str,
) -> None:
    assert callable(damage)
    damage(own_images)
    arguments = [small, "data.name=folder", f"data.path={own_images}", "data.domains=[]"]
    outcome = foul("learn", *arguments, *overrides, "--out", tmp_path / "run")
    assert message in outcome.error()
    assert not (tmp_path / "run").exists()


def test_a_corrupt_image_may_be_skipped(
    foul: Foul, small: Path, own_images: Path, tmp_path: Path
) -> None:
    corrupt(own_images)
    outcome = foul(
        *("learn", small, "data.name=folder", f"data.path={own_images}", "data.domains=[]"),
        *("data.allow_corrupt=true", "learning.rounds=1", "--out", tmp_path / "run"),
    )
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_elsewhere_is_one_line(
    foul: Foul, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(doctor_module, "machine", full)
    assert "The disk is full" in foul("doctor").error(code=1)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "Get the right to use it, or choose another place."),
        (errno.EROFS, "Choose a place that can be written."),
        (errno.ENOTDIR, "choose another path."),
        (errno.EISDIR, "name a file."),
        (errno.EIO, "Check the path and the disk."),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    foul: Foul, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number), "runs/[mine]")

    monkeypatch.setattr(doctor_module, "machine", refused)
    line = foul("doctor").error()
    assert line.startswith(f"foul: runs/[mine] cannot be used ({os.strerror(number)}).")
    assert line.endswith(remedy)


def test_a_failure_of_the_system_about_no_file_is_not_hidden(
    foul: Foul, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(doctor_module, "machine", bug)
    with pytest.raises(OSError, match="Bad file descriptor"):
        foul("doctor")


def test_other_failures_are_not_hidden(foul: Foul, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(doctor_module, "machine", bug)
    with pytest.raises(ZeroDivisionError):
        foul("doctor")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_one_line(
    foul: Foul, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(doctor_module, "machine", lambda *_: os.kill(os.getpid(), number))
    outcome = foul("doctor")
    assert outcome.error() == (
        "foul: Stopped. What was saved is intact; the same command goes on (learn: --resume)."
    )
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["learn", "--bogus"], ["bogus"], ["info"], ["predict", "x"]])
def test_wrong_usage_is_the_users_part(foul: Foul, arguments: list[str]) -> None:
    outcome = foul(*arguments)
    assert outcome.code == 2
    assert "Usage: foul" in outcome.err
    assert "Traceback" not in outcome.err


def test_text_in_brackets_and_colons_is_shown_as_it_is(foul: Foul, tmp_path: Path) -> None:
    odd = tmp_path / "[bold]odd[/bold] :cat: \\"
    assert str(odd) in foul("info", odd).error()


def test_the_module_runs_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "foul", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"foul {__version__}\n"
