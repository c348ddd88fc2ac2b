import tomllib

from foul.config import Config, load_config, shipped_configs
from foul.config.load import known_keys

from .conftest import Foul


def test_shipped_configurations_are_listed_with_a_line_each(foul: Foul) -> None:
    told = foul("config", "list", "--json").json
    assert {entry["name"] for entry in told} == set(shipped_configs())
    assert all(entry["about"] and not entry["about"].startswith("#") for entry in told)
    assert "digits" in foul("config", "list").out


def test_a_shown_configuration_is_the_one_that_is_used(foul: Foul) -> None:
    outcome = foul("config", "show", "digits", "learning.rounds=7", "data.domains=[plain]")
    shown = Config.model_validate(tomllib.loads(outcome.out))
    assert shown == load_config("digits", ["learning.rounds=7", "data.domains=[plain]"])
    assert tomllib.loads(foul("config", "show", "seed=4").out)["seed"] == 4


def test_the_schema_lists_every_key(foul: Foul) -> None:
    out = foul("config", "schema").out
    assert all(key in out for key in known_keys())
    assert foul("config", "schema", "--json").json == Config.model_json_schema()


def test_mistakes_are_one_line(foul: Foul) -> None:
    assert "Did you mean 'learning.rounds'?" in foul("config", "show", "digits", "rounds=3").error()
    assert "Did you mean 'digits'?" in foul("config", "show", "digit").error()
