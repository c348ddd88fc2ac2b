"""The experiments by name."""

from foul.errors import UserError
from foul.experiments.reproduce import (
    capacity,
    coefficients,
    colored_mnist,
    cost,
    dimension,
    domain_tables,
    forgetting,
    kappa_eta,
    tradeoff,
)
from foul.experiments.reproduce.plan import Experiment
from foul.names import find, hint

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        domain_tables.MAIN,
        domain_tables.APPENDIX,
        cost.EXPERIMENT,
        forgetting.EXPERIMENT,
        tradeoff.EXPERIMENT,
        coefficients.EXPERIMENT,
        colored_mnist.EXPERIMENT,
        capacity.EXPERIMENT,
        kappa_eta.EXPERIMENT,
        dimension.EXPERIMENT,
    )
}
"""In the order of the paper."""


def experiment(name: str) -> Experiment:
    """The experiment of this name, whatever its punctuation.

    Raises:
        UserError: there is none; the remedy names the nearest.
    """
    found = find(name, EXPERIMENTS)
    if found is None:
        raise UserError(
            f"Nothing called '{name}' can be reproduced",
            f"{hint(name, EXPERIMENTS)} `foul reproduce list` shows all.",
        )
    return EXPERIMENTS[found]
