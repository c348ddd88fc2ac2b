import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cli.conftest import Foul

pytest.importorskip("flwr", reason="needs Flower: pip install 'foul[flower]'")


def test_a_node_needs_a_client_and_a_socket(foul: Foul, small: Path) -> None:
    assert "--client and --socket" in foul("node", small).error()


def test_a_client_that_is_not_there_is_named(foul: Foul, small: Path) -> None:
    told = foul("node", small, "--client", "east-7", "--socket", "x.sock").error()
    assert "no client 'east-7'" in told


def test_a_node_says_when_it_is_ready_and_leaves_nothing(small: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="foul-") as folder:
        path = Path(folder, "n.sock")
        command = [sys.executable, "-m", "foul", "node", str(small), "--client", "east-1"]
        node = subprocess.Popen(
            [*command, "--socket", str(path)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert node.stdout is not None
            assert node.stdout.readline() == "node east-1: ready (27 samples, domain east)\n"
            assert path.exists()
        finally:
            node.terminate()
            node.communicate(timeout=30)
        assert node.returncode == 0
        assert not path.exists()
