"""What is no public key is said so before anybody is asked."""

from pathlib import Path

import pytest

from foul.deploy.certificates import make_node_key
from foul.deploy.control import Control
from foul.errors import UserError

pytest.importorskip("flwr", reason="needs foul[flower]")


def test_only_a_public_key_can_be_registered(tmp_path: Path) -> None:
    make_node_key(tmp_path / "key", "a")
    (tmp_path / "text").write_text("hello\n")
    control = Control("127.0.0.1:1", tmp_path / "ca.crt")
    for name in ("key", "text"):
        with pytest.raises(UserError, match=rf"{name} holds no public key.*key\.pub"):
            control.register(tmp_path / name, "a")
