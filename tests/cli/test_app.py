import subprocess
import sys

import pytest
from typer.main import get_command

from foul.cli.app import VERBS, program


@pytest.mark.parametrize("words", [[], ["--help"], ["nonsense"]])
def test_without_a_known_verb_all_are_there(words: list[str]) -> None:
    assert set(get_command(program(words)).commands) == set(VERBS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_comes_alone(verb: str) -> None:
    assert set(get_command(program([verb, "--help"])).commands) == {verb}  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [["--version"], ["config", "list"], ["federation", "--help"]])
def test_what_needs_no_torch_does_not_load_it(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['foul', *{words!r}]\n"
        "from foul.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('torch loaded:', 'torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.rstrip().endswith("torch loaded: False")
