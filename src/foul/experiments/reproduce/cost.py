"""`table-cost`: parameters, traffic and FLOPs of every method."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from foul.data.counts import image_counts
from foul.experiments.reproduce import notes
from foul.experiments.reproduce.methods import domain_trials
from foul.experiments.reproduce.paper import COSTS, PrintedCost
from foul.experiments.reproduce.plan import Asked, Done, Experiment, Outcome, Shown, Trial
from foul.experiments.reproduce.rows import Row, rows_of
from foul.federation.build import initial_network
from foul.models import DEPLOYED, part_of
from foul.report.aggregate import share
from foul.report.collect import RETRAIN
from foul.report.tables import NONE, Cell, Column, Line, Table
from foul.unlearning import Foul
from foul.unlearning.foul.scope import in_scope
from foul.unlearning.methods import make_method


def trials(asked: Asked) -> list[Trial]:
    """The same as the tables of accuracy: what they ran is not run again."""
    return domain_trials(asked)


def tell(asked: Asked, done: Sequence[Done]) -> Outcome:
    """Costs in all and per round; beside the paper's, as shares of Retrain's per round."""
    tables = []
    for trial in {d.trial.label: d.trial for d in done}.values():
        parameters = parameters_of(trial)
        for request in trial.forget:
            rows = [row for row in rows_of(trial, request, done) if row.variant.method != "none"]
            title = f"{trial.source.title}, forgetting {request}"
            tables.append(
                Shown(
                    f"{title}: what unlearning costs, in parentheses in % of Retrain's.",
                    costs(rows, parameters),
                )
            )
            tables.append(
                Shown(f"{title}: per round, in % of Retrain's, beside the paper's.", shares(rows))
            )
    return Outcome(
        tables,
        {},
        [
            notes.COSTS,
            "The paper prints 11.3 M trainable parameters for every method, FOUL too, whose V "
            "alone is trained; `changed` counts what a method may change (decision 24). Of V, ours "
            "leaves the square convolutions of the last stage as they are.",
            "16.02 of 42.73 MB is 37.5 %: the size of V, sent in 32 bits. Ours sends what it "
            "changes in 8 bits, the first time in 16, and counts what is sent once: the frozen "
            "parts, the stand-in, the trial of radii.",
            "Shares per round hide how many rounds a method takes: the first table has the sums.",
        ],
    )


def parameters_of(trial: Trial) -> dict[str, Tensor]:
    """The parameters of the trial's network that are deployed."""
    config = trial.config
    classes = image_counts(config.data).classes
    net = initial_network(config, classes, config.data.image_size)
    return {name: t for name, t in net.named_parameters() if part_of(name) in DEPLOYED}


def changed(row: Row, parameters: Mapping[str, Tensor]) -> int | None:
    """Parameters that a method may change; None where adapters or noise change them."""
    method = make_method(row.variant.method, row.variant.options)
    if isinstance(method, Foul):
        return count(in_scope(method.options, parameters))
    return None if method.name in ("fused", "fedrecovery") else count(parameters)


def count(parameters: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() for tensor in parameters.values())


def costs(rows: Sequence[Row], parameters: Mapping[str, Tensor]) -> Table:
    """Millions of parameters, MB and GFLOP in all and per round, and the share of Retrain's."""
    heads = ("method", "M params", "M changed", "rounds", "MB", "MB a round", "GFLOP", "GF a round")
    lines = []
    for row in rows:
        part, rounds = changed(row, parameters), row.mean("rounds")
        cells = [
            Cell(row.label),
            Cell(f"{count(parameters) / 1e6:.2f}"),
            Cell(NONE if part is None else f"{part / 1e6:.2f}"),
            Cell(NONE if rounds is None else f"{rounds:.3g}"),
        ]
        for key, unit in (("bytes", 1e-6), ("flops", 1e-9)):
            total, portion = row.mean(key), row.mean(f"{key}_share")
            beside = "" if portion is None or row.variant.method == RETRAIN else share(portion)
            cells.append(Cell(_spelt(total, unit), "", beside))
            each = per_round(row, key)
            cells.append(Cell(_spelt(each, unit)))
        lines.append(Line(cells, row.reference))
    return Table([Column(head) for head in heads], lines)


def _spelt(value: float | None, unit: float) -> str:
    """Four digits, but no powers of ten: these are read, not computed with."""
    if value is None:
        return NONE
    return f"{unit * value:.4g}" if unit * value < 1e4 else f"{unit * value:.0f}"


def shares(rows: Sequence[Row]) -> Table:
    """Traffic and FLOPs of a round as % of a round of Retrain, ours and the paper's."""
    heads = ("method", "traffic %", "paper", "FLOPs %", "paper")
    retrain = next((row for row in rows if row.variant.method == RETRAIN), None)
    lines = []
    for row in rows:
        told = COSTS.get(row.variant.printed)
        cells = [Cell(row.label)]
        for key, field in (("bytes", "megabytes"), ("flops", "flops")):
            cells.append(Cell(_share(row, retrain, key)))
            cells.append(Cell(NONE if told is None else f"{printed_share(told, field):.1f}"))
        if told is not None:
            lines.append(Line(cells, row.reference))
    return Table([Column(head) for head in heads], lines)


def per_round(row: Row, key: str) -> float | None:
    """A cost divided by the rounds; None without rounds."""
    total, rounds = row.mean(key), row.mean("rounds")
    return None if total is None or not rounds else total / rounds


def printed_share(told: PrintedCost, field: str) -> float:
    """The paper's cost of a method in % of its Retrain's."""
    return 100 * float(getattr(told, field)) / float(getattr(COSTS["Retrain"], field))


def _share(row: Row, retrain: Row | None, key: str) -> str:
    ours, theirs = per_round(row, key), per_round(retrain, key) if retrain else None
    return NONE if ours is None or not theirs else f"{100 * ours / theirs:.1f}"


EXPERIMENT = Experiment(
    name="table-cost",
    what="parameters, traffic and FLOPs per method",
    where="Table 2",
    sets=("pacs",),
    trials=trials,
    tell=tell,
    minutes=60,
    budget="What table-main runs on one data set, and nothing more: about 60 minutes on PACS64, "
    "seconds if table-main has run.",
    networks=("resnet18",),
)
