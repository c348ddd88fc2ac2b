from dataclasses import replace
from pathlib import Path

from foul.experiments.reproduce.colored_mnist import EXPERIMENT as COLORED
from foul.experiments.reproduce.domain_tables import APPENDIX, MAIN
from foul.experiments.reproduce.notes import absent, scale
from foul.experiments.reproduce.plan import Asked, Done
from foul.experiments.reproduce.sources import Source

from .made_up import PACS, done, trial

DIGITS = Source("digits28", Path("Digits28.zip"), ("mnist", "usps"))


def test_a_set_that_was_not_given_is_named() -> None:
    [one] = absent(MAIN, Asked([PACS], "cpu"))
    assert one.startswith("Terra Incognita was not given")


def test_a_set_that_the_paper_has_not_is_named() -> None:
    told = absent(MAIN, Asked([DIGITS], "cpu"))
    assert len(told) == 3
    assert told[-1] == "The paper has no figures of Digits of four data sets."
    assert absent(APPENDIX, Asked([PACS], "cpu"))[-1] == (
        "PACS is not in Appendix, Detailed Results of the paper."
    )


def test_an_embedded_set_is_always_there() -> None:
    assert absent(COLORED, Asked([Source("colored-mnist", None, ())], "cpu")) == []


def test_the_scale_is_told_for_each_data_set() -> None:
    found = [done(trial(()), {}, seed) for seed in (0, 1)]
    told = scale(MAIN, Asked([PACS], "cpu"), found)
    assert len(told) == 2
    assert "tiny of width 1 at 16 px" in told[0]
    assert "100 rounds of learning" in told[0]


def test_rounds_are_those_of_all_models() -> None:
    def learned(rounds: int) -> Done:
        return replace(done(trial(()), {}), learned={"rounds": [{}] * rounds})

    [told, *_] = scale(MAIN, Asked([PACS], "cpu"), [learned(7), learned(12), learned(6)])
    assert "6 to 12 rounds of learning. The authors" in told
    [told] = scale(COLORED, Asked([PACS], "cpu"), [learned(7)])
    assert told.endswith("7 rounds of learning. The paper does not say how it trained here.")
