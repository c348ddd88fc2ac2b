from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from foul.config import Config
from foul.config.load import describe_keys, known_keys, validate
from foul.errors import UserError


def nested(key: str, value: object) -> dict[str, Any]:
    """{"a": {"b": value}} for "a.b"."""
    *sections, last = key.split(".")
    values: dict[str, Any] = {last: value}
    for section in reversed(sections):
        values = {section: values}
    return values


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("backdoor.share", 0),
        ("backdoor.share", 1.5),
        ("backdoor.target", -1),
        ("backdoor.size", 0),
        ("backdoor.size", 29),
        ("clients.per_domain", 0),
        ("clients.per_domain", -1),
        ("clients.alpha", 0),
        ("clients.validation_fraction", 1),
        ("data.test_fraction", 0),
        ("data.image_size", 4),
        ("data.max_per_domain", 0),
        ("data.label_noise", 0.5),
        ("federation.participation", 0),
        ("federation.participation", 1.5),
        ("federation.quorum", 0),
        ("federation.dropout", 1),
        ("federation.keep_checkpoints", 0),
        ("learning.rounds", 0),
        ("learning.batch_size", 1),
        ("learning.momentum", 1),
        ("learning.l2u.mid_rate", -0.1),
        ("learning.l2u.generator_rate", 0),
        ("learning.l2u.reptile_step", 1.1),
        ("learning.supervised.rate", -1),
        ("learning.augment.crop", 0),
        ("model.width", 0),
        ("model.backbone", "resnet19"),
        ("model.k_channels", 0),
        ("device", "gpu"),
        ("seed", -1),
        ("workers", -1),
    ],
)
def test_impossible_values_are_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(UserError) as caught:
        validate(nested(key, value))
    assert key in str(caught.value)
    assert repr(value) in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", ["learning.l2u.mid_rate", "learning.l2u.alpha_rec", "model.width"])
def test_numbers_are_finite(key: str, value: float) -> None:
    with pytest.raises(UserError, match=key):
        validate(nested(key, value))


@pytest.mark.parametrize(
    ("backbone", "stages"), [("tiny", 2), ("small", 3), ("resnet18", 4), ("resnet50", 4)]
)
def test_a_split_leaves_something_for_k_and_v(backbone: str, stages: int) -> None:
    for split in range(4):
        values = {"model": {"backbone": backbone, "split": split}}
        if split < stages:
            assert validate(values).model.split == split
        else:
            with pytest.raises(UserError, match=f"split={split} .*{backbone}.* most {stages - 1}"):
                validate(values)


def test_training_nothing_is_refused() -> None:
    with pytest.raises(UserError, match=r"learning\.l2u: generator_epochs and mid_epochs are both"):
        validate({"learning": {"l2u": {"generator_epochs": 0, "mid_epochs": 0}}})


def test_an_adversarial_loss_needs_its_head() -> None:
    with pytest.raises(UserError, match=r"alpha_adv > 0 needs.*model\.adversarial=true"):
        validate({"learning": {"l2u": {"alpha_adv": 1}}})
    validate({"learning": {"l2u": {"alpha_adv": 1}}, "model": {"adversarial": True}})


def test_a_configuration_cannot_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().learning.rounds = 5  # type: ignore[misc]


def test_every_key_says_what_it_means_and_allows() -> None:
    rows = describe_keys()
    assert [row[0] for row in rows] == known_keys()
    for key, default, allowed, meaning in rows:
        assert meaning.endswith("."), key
        assert default, key
        assert allowed, key


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("learning.rounds", "int >= 1"),
        ("data.test_fraction", "float > 0 < 1"),
        ("clients.partition", "iid | dirichlet | uneven"),
        ("data.domains", "tuple[str, ...]"),
        ("learning.augment.flip", "bool"),
    ],
)
def test_what_is_allowed_is_readable(key: str, allowed: str) -> None:
    assert {row[0]: row[2] for row in describe_keys()}[key] == allowed


def test_the_json_schema_describes_every_key() -> None:
    schema = Config.model_json_schema()
    sections = [schema, *schema["$defs"].values()]
    names = {name for section in sections for name in section["properties"]}
    assert {part for key in known_keys() for part in key.split(".")} == names
    for section in sections:
        assert section["additionalProperties"] is False
        for name, field in section["properties"].items():
            assert "$ref" in field or field.get("description"), name


def sections(model: type[BaseModel] = Config) -> list[type[BaseModel]]:
    found = [model]
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += sections(field.annotation)
    return found


@settings(deadline=None)
@given(st.data())
def test_unknown_keys_are_refused_in_every_section(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(sections()))
    word = data.draw(st.text("abcdefgh_", min_size=1).filter(lambda w: w not in model.model_fields))
    with pytest.raises(ValidationError, match="extra_forbidden"):
        model.model_validate({word: 1})
