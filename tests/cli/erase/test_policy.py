from pathlib import Path

from cli.conftest import Foul
from foul.erasure.policy import Policy
from foul.erasure.store import Store


def test_the_default_policy_can_be_read_again(foul: Foul, run: Path) -> None:
    text = foul("erase", "policy").out
    # Also before the first request.
    assert foul("erase", "policy", run).out == text
    (Store.open(run).path / "policy.toml").write_text(text)
    assert foul("erase", "policy", run, "--json").json == Policy().model_dump(mode="json")
