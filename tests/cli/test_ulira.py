from pathlib import Path

from small_runs import small_config

from foul.config.load import config_to_toml

from .conftest import Foul


def test_a_table_and_json(foul: Foul, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(config_to_toml(small_config(clients__per_domain=1, learning__rounds=1)))
    arguments = ("ulira", path, "-f", "domain:east", "-m", "none", "--shadows", 4)
    outcome = foul(*arguments, "-o", tmp_path / "out", "-q")
    assert outcome.code == 0, outcome.err
    for text in ("u-lira", "lira", "none", "retrain", "AUC (95 %)", "4 shadow pairs"):
        assert text in outcome.out
    rows = foul(*arguments, "-o", tmp_path / "out", "-q", "--json").json
    assert [row["attack"] for row in rows] == ["lira", "u-lira", "lira"]


def test_a_mistake_is_one_line(foul: Foul, tmp_path: Path) -> None:
    error = foul("ulira", "-f", "client:plain-0", "-o", tmp_path / "out").error()
    assert "--forget domain:NAME" in error
    assert not (tmp_path / "out").exists()
