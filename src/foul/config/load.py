"""Configuration files, `key=value` overrides, and errors that name the key and a remedy."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import tomli_w
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from foul.config.schema import Config
from foul.errors import UserError
from foul.names import hint

Options = TypeVar("Options", bound=BaseModel)


def shipped_configs() -> dict[str, Path]:
    """The configurations that come with foul, by name."""
    folder = Path(str(resources.files("foul") / "configs"))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def load_config(
    source: str | Path | None = None, overrides: Iterable[str] | Mapping[str, Any] = ()
) -> Config:
    """A configuration from a TOML file or a shipped name, changed by overrides.

    Args:
        source: a path, the name of a shipped configuration, or nothing for the defaults.
        overrides: `"section.key=value"` texts as on the command line, or a mapping from
            `"section.key"` to values.

    Raises:
        UserError: names the file or key, the value, and what would be right.
    """
    values = _read_toml(_find(source)) if source is not None else {}
    if not isinstance(overrides, Mapping):
        overrides = dict(parse_override(text) for text in overrides)
    for key, value in overrides.items():
        _set(values, key, value)
    return validate(values)


def read_config_file(path: Path) -> Config:
    """The configuration in this file."""
    return validate(_read_toml(path))


def config_to_toml(config: Config) -> str:
    """The whole configuration as TOML; what is None is left out (TOML has no null)."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value`, where value is TOML, a list of words, or else a plain string."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise UserError(f"'{text}' is not key=value", "Write for example learning.rounds=10.")
    return key.strip(), _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        # Shells eat the quotes of ["photo", "sketch"].
        if text.startswith("[") and text.endswith("]"):
            return [_parse_value(item.strip()) for item in text[1:-1].split(",")]
        return text


def known_keys(model: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    """Every key of the configuration, dotted."""
    keys = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += known_keys(kind, f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys


def validate(values: Mapping[str, Any]) -> Config:
    """The configuration with these values.

    Raises:
        UserError: the first problem, with the nearest known key where one was mistyped.
    """
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise _explained(error) from None


def validate_options(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """Options of a method with these values.

    Raises:
        UserError: the first problem, with the nearest option where one was mistyped.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            raise UserError(f"Unknown option '{key}'", hint(key, kind.model_fields)) from None
        message = problem["msg"].removeprefix("Value error, ")
        raise UserError(f"{key}={problem['input']!r}: {message}") from None


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    shipped = shipped_configs()
    if str(source) in shipped:
        return shipped[str(source)]
    raise UserError(
        f"Configuration '{source}' is neither a file nor shipped with foul",
        hint(path.stem, shipped),
    )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML ({error})", "Mend that line.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "Check the path.") from error


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key; a section that is not one is reported as an unknown key."""
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise _unknown_key(key)
    values[last] = value


def _unknown_key(key: str) -> UserError:
    """Names the nearest key: one that ends in the same word, or is spelled alike."""
    known = known_keys()
    by_last = {name.rsplit(".", 1)[-1]: name for name in reversed(known)}
    word = key.rsplit(".", 1)[-1]
    last = difflib.get_close_matches(word, by_last, 1, 0.7)
    close = [by_last[last[0]]] if last else difflib.get_close_matches(key, known, 1, 0.6)
    if close:
        return UserError(f"Unknown key '{key}'", f"Did you mean '{close[0]}'?")
    return UserError(f"Unknown key '{key}'", "`foul config schema` lists all keys.")


def _explained(error: ValidationError) -> UserError:
    problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return _unknown_key(_first_key(key, problem["input"]))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return UserError(f"{key}: {message}" if key else message)
    if problem["type"] == "string_pattern_mismatch":
        # A regular expression explains nothing to most people; the key's meaning does.
        meaning = next(row[-1] for row in describe_keys() if row[0] == key)
        return UserError(f"{key}={problem['input']!r} is not possible", f"Allowed: {meaning}")
    return UserError(
        f"{key}={problem['input']!r}: {message[0].lower()}{message[1:]}",
        "`foul config schema` shows what is allowed.",
    )


def _first_key(key: str, value: Any) -> str:
    """The first dotted key below an unknown section, as the user wrote it."""
    while isinstance(value, dict) and value:
        name = next(iter(value))
        key, value = f"{key}.{name}", value[name]
    return key


def describe_keys() -> list[list[str]]:
    """Key, default, what is allowed, and meaning of every setting."""
    rows = []
    for key in known_keys():
        model: type[BaseModel] = Config
        *sections, last = key.split(".")
        for section in sections:
            kind = model.model_fields[section].annotation
            assert isinstance(kind, type)
            model = kind
        field = model.model_fields[last]
        meaning = " ".join((field.description or "").split())
        rows.append([key, str(field.default), _allowed(field), meaning])
    return rows


def _allowed(field: FieldInfo) -> str:
    """Choices of a literal, or type and bounds."""
    if get_origin(field.annotation) is Literal:
        return " | ".join(str(choice) for choice in get_args(field.annotation))
    kind = getattr(field.annotation, "__name__", str(field.annotation))
    if field.annotation is not None and get_origin(field.annotation) is not None:
        kind = str(field.annotation).replace("pathlib.", "")
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name)}"
        for rule in field.metadata
        for name, sign in signs.items()
        if hasattr(rule, name)
    ]
    return " ".join([kind, *bounds])
