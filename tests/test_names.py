import pytest

from foul.names import canonical, find, hint, slug


def test_canonical_ignores_case_and_punctuation() -> None:
    assert canonical("Real World") == canonical("real_world") == "realworld"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sketch", "sketch"),
        ("Real World", "real-world"),
        ("art_painting", "art-painting"),
        ("+90%", "plus-90"),
        ("-90%", "minus-90"),
        ("..", "unnamed"),
    ],
)
def test_slug(name: str, expected: str) -> None:
    assert slug(name) == expected


def test_find_prefers_the_exact_spelling() -> None:
    assert find("Real_World", ["real world", "Real_World"]) == "Real_World"
    assert find("REALWORLD", ["Art", "Real World"]) == "Real World"
    assert find("photo", ["Art"]) is None


def test_hint_names_the_nearest_or_all() -> None:
    assert hint("skech", ["photo", "sketch"]) == "Did you mean 'sketch'?"
    assert hint("zzz", ["photo", "sketch"]) == "Choose one of: photo, sketch."
