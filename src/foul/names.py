"""Names as users type them: compared without case and punctuation, with the nearest as a hint."""

from collections.abc import Iterable
from difflib import get_close_matches


def canonical(name: str) -> str:
    """The name without case, spaces and punctuation: 'Real World' and 'real_world' are equal."""
    return "".join(character for character in name.casefold() if character.isalnum())


def slug(name: str) -> str:
    """The name in lower case with single dashes for everything that is not a letter or digit.

    A leading plus or minus between two names that differ in nothing else (Colored-MNIST's
    '+90%' and '-90%') is spelled out, so that slugs stay different where names do.
    """
    spelled = name.replace("+", "plus ").replace("%", "")
    if spelled.startswith("-"):
        spelled = f"minus {spelled[1:]}"
    words = "".join(c if c.isalnum() else " " for c in spelled.casefold()).split()
    return "-".join(words) or "unnamed"


def find(name: str, choices: Iterable[str]) -> str | None:
    """The choice that equals this name, exactly or without case and punctuation."""
    known = list(choices)
    if name in known:
        return name
    return next((choice for choice in known if canonical(choice) == canonical(name)), None)


def hint(name: str, choices: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest choice if one is near, else all of them."""
    by_key = {canonical(choice): choice for choice in choices}
    near = get_close_matches(canonical(name), by_key, n=1, cutoff=0.5)
    if near:
        return f"Did you mean '{by_key[near[0]]}'?"
    return f"Choose one of: {', '.join(by_key.values())}."
