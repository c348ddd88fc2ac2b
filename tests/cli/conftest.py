"""The command `foul` in this process, and a finished run to look at."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from small_runs import small_config

from foul import RunFolder, learn
from foul.cli.app import main
from foul.config.load import config_to_toml


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def error(self, code: int = 2) -> str:
        """The one line that explains a failure."""
        assert self.code == code, (self.code, self.err)
        last = self.err.splitlines()[-1]
        assert last.startswith("foul: "), self.err
        assert "Traceback" not in self.err
        assert self.out == ""
        return last


Foul = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """`main` takes the signals over."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def foul(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Foul:
    """Runs `foul ARGUMENTS`."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["foul", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small setting as a file."""
    path = tmp_path_factory.mktemp("configs") / "small.toml"
    path.write_text(config_to_toml(small_config()))
    return path


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned; do not change it."""
    return learn(small_config(), tmp_path_factory.mktemp("cli") / "finished").path


@pytest.fixture
def finished(finished_run: Path) -> RunFolder:
    return RunFolder.open(finished_run)


@pytest.fixture
def own_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder: two domains, two classes that differ in brightness, 12 images each."""
    monkeypatch.setenv("FOUL_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for domain, tint in (("ink", 0), ("oil", 60)):
        for label, light in (("day", 150), ("night", 30)):
            folder = tmp_path / "own" / domain / label
            folder.mkdir(parents=True)
            for number in range(12):
                pixels = rng.integers(0, 40, (20, 24, 3)) + light
                pixels[..., 0] += tint
                PIL.Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "own"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A setting of two clients and one round, as a file."""
    config = small_config(
        data__domains=["east", "north"], clients__per_domain=1, learning__rounds=1
    )
    path = tmp_path / "tiny.toml"
    path.write_text(config_to_toml(config))
    return path
