"""Why our figures differ from the paper's: sentences that point to the decisions."""

from collections import Counter
from collections.abc import Sequence

from foul.data.known import known
from foul.experiments.reproduce.paper import ROWS
from foul.experiments.reproduce.plan import Asked, Done, Experiment

PAPER_FORM = (
    "The paper's recipe hardly forgot on `digits`, PACS and Digits28: clients hold one domain "
    "each, so K knows every class; the mean over all clients pulls back; minus a descent delta is "
    "no ascent (docs/decisions.md, 'What had to change'). Ours is `FOUL`; (1) is FedAvg of the "
    "scope over retain clients, (1)+(2) adds the matching (decision 13)."
)
RETRAIN = (
    "The authors' Retrain had only the rounds of unlearning; `Retrain` has as many as learning "
    "took, `Retrain, matched` as few as unlearning has at this size, and the paper's row stands "
    "beside both (decision 16)."
)
ATTACK = (
    "MIA is another attack: its non-members are the forget clients' own test samples, because "
    "the paper's attack tells domains apart, not members (decision 15)."
)
ADDING_UP = (
    "The paper prints RA gaps of FOUL on PACS (+14.55, +14.49) that its own columns do not give "
    "(+10.27, +9.49); the columns are used (decision 18)."
)
LOADER = (
    "The authors' PACS loader gives a client images of other domains than its own, and their "
    "released FOUL changes all parameters; the printed curves cannot settle what V alone can do."
)
COSTS = (
    "Bytes are counted where they cross the border, FLOPs by torch's counter with the backward "
    "pass; what the paper counts is not said (decisions 20, 24)."
)


def scale(experiment: Experiment, asked: Asked, done: Sequence[Done]) -> list[str]:
    """How this run differs from the authors' setting, and what was not measured."""
    told = []
    for source in dict.fromkeys(d.trial.source for d in done):
        own = [d for d in done if d.trial.source == source]
        config, rounds = own[0].trial.config, sorted(len(d.learned["rounds"]) for d in own)
        spread = f"{rounds[0]} to {rounds[-1]}" if rounds[0] < rounds[-1] else f"{rounds[0]}"
        authors = (
            "The paper does not say how it trained here."
            if experiment.embedded
            else "The authors: ResNet-18 (ResNet-50 for TerraIncognita) of full width at 64 px, "
            "5 clients per domain, 100 rounds of learning, 50 of unlearning."
        )
        told.append(
            f"Size `{asked.size}` on {source.title}: {config.model.backbone} of width "
            f"{config.model.width:g} at {config.data.image_size} px, "
            f"{config.clients.per_domain} clients per domain, {spread} rounds of learning. "
            f"{authors}"
        )
    return [*told, *absent(experiment, asked)]


def absent(experiment: Experiment, asked: Asked) -> list[str]:
    """The paper's data sets that were not given, and given ones that it does not have."""
    if experiment.embedded:
        return []
    names = [source.name for source in asked.sources if not source.made]
    told = [
        f"{known(name).title} was not given: the paper's figures of it are not compared with "
        "anything here."
        for name in experiment.sets
        if name not in names
    ]
    told += [
        f"The paper has no figures of {source.title}."
        if source.name not in ROWS
        else f"{source.title} is not in {experiment.where} of the paper."
        for source in asked.sources
        if not source.made and source.name not in experiment.sets
    ]
    return told


def failures(done: Sequence[Done]) -> list[str]:
    """The variants without a result, and why."""
    return [f"Failed on {d.trial.label}: {failure}." for d in done for failure in d.failures]


def origins(done: Sequence[Done]) -> list[str]:
    """Which results were not made by this command."""
    taken = Counter(r["origin"] for d in done for r in d.results if "origin" in r)
    total = sum(len(d.results) for d in done)
    return [
        f"{count} of {total} results were taken from {origin}."
        for origin, count in sorted(taken.items())
    ]
