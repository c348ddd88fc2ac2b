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


@pytest.mark.parametrize("name", ["90%", "SITE111", "site 1/11/"])
def test_a_name_that_fits_several_is_none_of_them(name: str) -> None:
    choices = ["+90%", "-90%", "site-1-11", "site-11-1", "site.1.11"]
    assert find(name, choices) is None


def test_numbers_are_not_run_together() -> None:
    assert find("site-11-1", ["site-1-11"]) is None
    assert find("SITE 1_11", ["site-1-11"]) == "site-1-11"
    assert find("site1", ["site-1"]) == "site-1"


def test_words_tell_choices_apart() -> None:
    choices = ["site-1-11", "site-11-1"]
    assert find("site_11_1", choices) == "site-11-1"
    assert find("Site 1 11", choices) == "site-1-11"
    assert find("minus 90", ["+90%", "-90%"]) == "-90%"


def test_hint_names_all_that_are_equally_near() -> None:
    assert hint("90%", ["+90%", "-90%"]) == "Did you mean '+90%' or '-90%'?"
    assert hint("zzz", ["+90%", "-90%"]) == "Choose one of: +90%, -90%."


def test_hint_names_the_nearest_or_all() -> None:
    assert hint("skech", ["photo", "sketch"]) == "Did you mean 'sketch'?"
    assert hint("zzz", ["photo", "sketch"]) == "Choose one of: photo, sketch."
