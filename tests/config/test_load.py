import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foul.config import Config, load_config, shipped_configs
from foul.config.load import config_to_toml, known_keys, parse_override, read_config_file
from foul.errors import UserError
from foul.names import canonical

SHIPPED = sorted(shipped_configs())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning.rounds=3", ("learning.rounds", 3)),
        ("learning.l2u.mid_rate=1e-3", ("learning.l2u.mid_rate", 0.001)),
        ("learning.augment.flip=true", ("learning.augment.flip", True)),
        ("data.name=pacs", ("data.name", "pacs")),
        ("data.name='pacs'", ("data.name", "pacs")),
        ("data.path=/a b/c=d.zip", ("data.path", "/a b/c=d.zip")),
        ("data.path=~/PACS", ("data.path", "~/PACS")),
        ('data.domains=["photo", "sketch"]', ("data.domains", ["photo", "sketch"])),
        ("data.domains=[photo,art painting]", ("data.domains", ["photo", "art painting"])),
        ("data.domains=[]", ("data.domains", [])),
        (" seed = 3 ", ("seed", 3)),
        ("data.name=", ("data.name", "")),
    ],
)
def test_overrides_are_typed_as_people_write_them(text: str, expected: tuple[str, Any]) -> None:
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["learning.rounds", "=3", "", " =3"])
def test_what_is_no_override_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"is not key=value.*learning\.rounds=10"):
        parse_override(text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text())
def test_any_text_is_an_override_or_a_user_error(key: str, value: str) -> None:
    try:
        found, _ = parse_override(f"{key}={value}")
    except UserError:
        assert not key.partition("=")[0].strip()
    else:
        assert found == key.partition("=")[0].strip()


def test_a_file_is_changed_by_overrides(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('seed = 4\n[learning]\nrounds = 7\n[data]\nname = "synthetic"\n')
    config = load_config(file, ["learning.rounds=9", "model.backbone=tiny"])
    assert (config.seed, config.learning.rounds) == (4, 9)
    assert (config.data.name, config.model.backbone) == ("synthetic", "tiny")
    assert load_config(file) == read_config_file(file)
    assert load_config(file, {"learning.rounds": 9}).learning.rounds == 9


def test_the_last_override_counts() -> None:
    assert load_config(None, ["seed=1", "seed=2"]).seed == 2


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("rounds", "learning.rounds"),
        ("learning.ronds", "learning.rounds"),
        ("lerning.rounds", "learning.rounds"),
        ("mid_rate", "learning.l2u.mid_rate"),
        ("learning.mid_rate", "learning.l2u.mid_rate"),
        ("clients.perdomain", "clients.per_domain"),
        ("sed", "seed"),
        ("data.paths", "data.path"),
        ("mdoel.split", "model.split"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config(None, [f"{key}=3"])
    assert str(caught.value) == f"Unknown key '{key}'. Did you mean '{nearest}'?"


def test_a_key_below_a_value_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "seed.toml").write_text("seed = 1")
    with pytest.raises(UserError, match=r"Unknown key 'seed\.x'"):
        load_config(tmp_path / "seed.toml", ["seed.x=3"])


def test_a_key_like_no_other_points_to_the_list() -> None:
    with pytest.raises(UserError, match=r"'zzzzzz'.*`foul config schema` lists all keys"):
        load_config(None, ["zzzzzz=1"])


@settings(deadline=None)
@given(st.sampled_from(known_keys()), st.data())
def test_one_wrong_letter_is_forgiven_with_a_suggestion(key: str, data: st.DataObject) -> None:
    last = key.rsplit(".", 1)[-1]
    place = data.draw(st.integers(0, len(last) - 1))
    typo = key[: len(key) - len(last)] + last[:place] + "0" + last[place + 1 :]
    with pytest.raises(UserError, match=r"Unknown key .* Did you mean '"):
        load_config(None, {typo: 1})


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learning.rounds=many", r"learning\.rounds='many': input should be a valid integer"),
        ("learning.rounds=2.5", r"learning\.rounds=2\.5: .*integer"),
        ("data.name=3", r"data\.name=3: input should be a valid string"),
        ("learning=3", "learning=3"),
        ("data.domains=photo", r"data\.domains='photo': .*tuple"),
        ("model.backbone=resnet", r"model\.backbone='resnet': .*'resnet18'"),
        ("device=gpu", r"device='gpu' is not possible. Allowed: .*`cuda:N`"),
        ("learning.augment.flip=maybe", r"learning\.augment\.flip='maybe': .*boolean"),
    ],
)
def test_a_wrong_type_is_named_with_its_value(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load_config(None, [override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"seed = ", b"[learning\nrounds=3", b"seed = 1\nseed = 2", b"name = '\xff\xfe'"]
)
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.toml").write_bytes(content)
    with pytest.raises(UserError, match=r"broken\.toml is not valid TOML") as caught:
        load_config(tmp_path / "broken.toml")
    assert "\n" not in str(caught.value)


def test_a_missing_file_suggests_the_nearest_shipped_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'digts' is neither a file.*Did you mean 'digits'"):
        load_config("digts")
    with pytest.raises(UserError, match=r"nowhere/digits\.toml.*Did you mean 'digits'"):
        load_config(tmp_path / "nowhere" / "digits.toml")
    with pytest.raises(UserError, match=r"is neither a file"):
        load_config(tmp_path)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_configuration_loads(name: str) -> None:
    config = load_config(name)
    assert config == read_config_file(shipped_configs()[name])
    first = shipped_configs()[name].read_text().splitlines()[0]
    assert first.startswith("# ")
    assert canonical(config.data.name)


def test_the_default_configurations_are_shipped() -> None:
    assert {"digits", "folder"} <= set(SHIPPED)
    assert load_config("digits").data.name == "digits"


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_configurations_survive_writing(name: str, tmp_path: Path) -> None:
    config = load_config(name, {"data.path": Path("some where/ä.zip"), "data.domains": ["a", "b"]})
    (tmp_path / "config.toml").write_text(config_to_toml(config), encoding="utf-8")
    assert read_config_file(tmp_path / "config.toml") == config


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
rates = st.floats(1e-12, 10, allow_nan=False)
overrides = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 2**70),
        "data.name": texts,
        "data.domains": st.lists(texts, max_size=3),
        "data.max_per_domain": st.none() | st.integers(1, 10**6),
        "learning.l2u.mid_rate": rates,
        "learning.l2u.alpha_k": st.floats(0, 1e6),
        "learning.objective": st.sampled_from(["l2u", "supervised"]),
        "federation.participation": st.floats(0, 1, exclude_min=True),
        "learning.augment.flip": st.booleans(),
        "device": st.sampled_from(["auto", "cpu", "cuda:3", "mps"]),
    },
)


@settings(deadline=None)
@given(overrides)
def test_a_written_configuration_is_the_same(values: dict[str, Any]) -> None:
    config = load_config(None, values)
    assert Config.model_validate(tomllib.loads(config_to_toml(config))) == config
    assert Config.model_validate(config.model_dump(mode="json")) == config
