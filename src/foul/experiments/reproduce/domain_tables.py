"""`table-main` and `table-appendix`: FA, RA, TA and MIA of every method."""

from collections.abc import Sequence

from foul.experiments.reproduce import notes
from foul.experiments.reproduce.methods import domain_trials
from foul.experiments.reproduce.overall import overall
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Trial
from foul.experiments.reproduce.rows import both_tables


def trials(asked: Asked) -> list[Trial]:
    """Every method on every data set."""
    return domain_trials(asked)


def told_tables(asked: Asked, done: Sequence[Done]) -> Outcome:
    """The means over the requests, a table of ours per request, one beside the paper's, and the
    differences."""
    tables, sentences = [], []
    for trial in {d.trial.label: d.trial for d in done}.values():
        shown, nearest = overall(trial, done)
        tables += shown
        sentences += nearest
        for request in trial.forget:
            shown, far = both_tables(trial, request, done)
            tables += shown
            sentences += far
    reasons = [notes.PAPER_FORM, notes.RETRAIN, notes.ATTACK, notes.ADDING_UP, notes.LOADER]
    return Outcome(tables, {}, [*sentences, *reasons, notes.COSTS])


_BUDGET = (
    "PACS64, one domain: 30 rounds of learning at 17 s, Retrain 30 rounds at 15 s, two learning "
    "stages of other methods, about 75 further rounds at 10 to 25 s, 19 models judged at 10 s: "
    "about 60 minutes. Digits28 with 20 rounds: about 50."
)

MAIN = Experiment(
    name="table-main",
    what="FA, RA, TA and MIA of every method on PACS and TerraIncognita",
    where="Table 1",
    sets=("pacs", "terra-incognita"),
    trials=trials,
    tell=told_tables,
    minutes=60,
    budget=_BUDGET,
    networks=("resnet18", "resnet50"),
)
APPENDIX = Experiment(
    name="table-appendix",
    what="FA, RA, TA and MIA of every method on VLCS and OfficeHome",
    where="Appendix, Detailed Results",
    sets=("vlcs", "officehome"),
    trials=trials,
    tell=told_tables,
    minutes=60,
    budget=_BUDGET,
    networks=("resnet18",),
)
