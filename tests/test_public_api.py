import importlib.util
import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from small_runs import SMALL

import foul

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart.py"


@pytest.mark.parametrize("name", foul.__all__)
def test_everything_public_is_there_and_documented(name: str) -> None:
    thing = getattr(foul, name)
    assert name == "__version__" or inspect.getdoc(thing)


def test_names_are_sorted_and_unique() -> None:
    assert sorted(set(foul.__all__)) == foul.__all__


def test_the_package_is_typed() -> None:
    assert foul.__file__ is not None
    assert (Path(foul.__file__).parent / "py.typed").is_file()


def test_the_version_is_the_installed_one() -> None:
    assert foul.__version__ == version("foul")


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, foul; print('torch' in sys.modules, 'learn' in dir(foul))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="lern"):
        foul.lern  # type: ignore[attr-defined]  # noqa: B018


def load_quickstart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart", QUICKSTART)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_quickstart_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = foul.load_config
    monkeypatch.setattr(foul, "load_config", lambda name, changes: real(name, changes | SMALL))
    load_quickstart().main(tmp_path / "run")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["east", "north", "all"]
    assert (tmp_path / "run" / "models" / "learned.safetensors").is_file()


@pytest.mark.slow
def test_the_quickstart_learns_on_the_real_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, fewer = foul.load_config, {"data.max_per_domain": 500}
    monkeypatch.setattr(foul, "load_config", lambda name, changes: real(name, changes | fewer))
    load_quickstart().main(tmp_path / "run")
    accuracy = float(capsys.readouterr().out.splitlines()[-1].split()[1])
    assert accuracy > 25


def test_the_quickstart_is_a_dozen_lines() -> None:
    body = inspect.getsource(load_quickstart().main)
    assert len(body.splitlines()) <= 12
