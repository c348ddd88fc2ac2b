"""Names as users type them: compared without case and punctuation, with the nearest as a hint."""

import re
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


def _joined(name: str) -> str:
    """The slug without its dashes, but for those between two numbers."""
    return re.sub(r"(?<!\d)-|-(?!\d)", "", slug(name))


def find(name: str, choices: Iterable[str]) -> str | None:
    """The choice that equals this name: exactly, else without case and punctuation.

    Nobody may be taken for somebody else: numbers are kept apart ('site_11_1' is not 'site-1-11'),
    and a name that fits several choices is none of them.
    """
    known = list(dict.fromkeys(choices))
    for spelled in (str, slug, _joined):
        equal = [choice for choice in known if spelled(choice) == spelled(name)]
        if equal:
            return equal[0] if len(equal) == 1 else None
    return None


def hint(name: str, choices: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest choices if any is near, else all of them."""
    known = list(choices)
    near = get_close_matches(canonical(name), {canonical(c): None for c in known}, n=1, cutoff=0.5)
    if near:
        nearest = [f"'{choice}'" for choice in known if canonical(choice) == near[0]]
        return f"Did you mean {' or '.join(nearest)}?"
    return f"Choose one of: {', '.join(known)}."
