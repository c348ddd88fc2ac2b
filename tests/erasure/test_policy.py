from pathlib import Path

import pytest

from foul.erasure.policy import Policy, load_policy, policy_text
from foul.errors import UserError


def test_without_a_file_the_default_counts(tmp_path: Path) -> None:
    assert load_policy(tmp_path) == Policy()


def test_what_is_printed_can_be_read_and_explains_every_key(tmp_path: Path) -> None:
    changed = Policy.model_validate(
        {"accept": {"retain_loss": 0.02}, "methods": {"prefer": ["retrain"]}}
    )
    for policy in (Policy(), changed):
        text = policy_text(policy)
        (tmp_path / "policy.toml").write_text(text)
        assert load_policy(tmp_path) == policy
        lines = text.splitlines()
        keys = [n for n, line in enumerate(lines) if " = " in line and line[0] != "#"]
        assert len(keys) == 11
        assert all(lines[n - 1].startswith("# ") for n in keys)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[accept]\nmia_auc_high = 2", r"accept\.mia_auc_high.*less than or equal to 1"),
        ("[accept]\nmia = 1", r"accept\.mia: Extra"),
        ("[accept", "not valid TOML"),
        ("[purge]\nold_model = 'burn'", r"purge\.old_model"),
        ("[methods]\nprefer = []", r"methods\.prefer.*at least 1"),
    ],
)
def test_a_mistake_names_the_key(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(UserError, match=rf"{told}.*foul erase policy"):
        load_policy(tmp_path)
