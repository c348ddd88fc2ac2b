from dataclasses import replace

from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.plan import Variant
from foul.experiments.reproduce.work import branch_work, learning_work, round_work

from .made_up import trial


def work(*rows: Variant, requests: int = 1) -> float:
    # The small configuration learns for three rounds.
    return branch_work(trial(rows, forget=("domain:sketch",) * requests))


def test_learning_counts_its_rounds() -> None:
    assert learning_work(trial(())) == 3
    assert work() == 0


def test_each_request_is_served_and_judged() -> None:
    assert work(Variant("Retrain", "retrain")) == 3 + 1
    assert work(Variant("Retrain", "retrain"), requests=4) == 16
    assert work(Variant("learned", "none")) == 1
    assert work(Variant("NoT", "not", ("rounds=4",))) == 5


def test_foul_takes_more_rounds_after_a_long_learning() -> None:
    short = trial((Variant("FOUL", "foul"),), forget=("domain:sketch",))
    learning = short.config.learning.model_copy(update={"rounds": 20})
    long = replace(short, config=short.config.model_copy(update={"learning": learning}))
    assert branch_work(short) == 5 * round_work("foul") + 1
    assert branch_work(long) == 9 * round_work("foul") + 1


def test_foul_works_on_cached_outputs() -> None:
    assert work(Variant("FOUL", "foul", ("rounds=4",))) == 4 * round_work("foul") + 1
    assert round_work("foul") < round_work("learning")


def test_methods_that_learn_alike_learn_once_for_all_requests() -> None:
    one = work(Variant("FFMU", "ffmu"))
    both = work(Variant("FFMU", "ffmu"), Variant("adapted", "ffmu-adapted", ("rounds=2",)))
    assert one == 3 + 1
    assert both == 3 + 1 + 2 + 1
    assert work(Variant("FFMU", "ffmu"), requests=2) == 3 + 2


def test_the_whole_table_takes_as_long_as_planned() -> None:
    # With 30 rounds of 17 s: an hour, as the experiment says.
    whole = trial(variants("cpu"))
    longer = whole.config.learning.model_copy(update={"rounds": 30})
    config = whole.config.model_copy(update={"learning": longer})
    rounds = 30 + branch_work(replace(whole, config=config))
    assert 50 < rounds * 17 / 60 < 75
