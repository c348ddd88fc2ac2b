"""Going on with a model that has learned: the same recipe, gently and without an end in view."""

from foul.config.schema import LearningConfig

RATE = 0.2
"""Local rates as a share of those of the learning stage, where nothing else is asked for."""


def staying_fixed(config: LearningConfig) -> int:
    """`fix_statistics_after` for a model that has learned: batch statistics that learning fixed
    stay fixed, from the first round on."""
    return -1 if config.fix_statistics_after else 0


def going_on(config: LearningConfig, rounds: int, rate: float = RATE) -> LearningConfig:
    """The learning stage for these rounds, at this constant share of its local rates."""
    l2u = config.l2u.model_copy(
        update={
            "generator_rate": config.l2u.generator_rate * rate,
            "mid_rate": config.l2u.mid_rate * rate,
        }
    )
    supervised = config.supervised.model_copy(update={"rate": config.supervised.rate * rate})
    return config.model_copy(
        update={
            "rounds": rounds,
            "schedule": "constant",
            "fix_statistics_after": staying_fixed(config),
            "l2u": l2u,
            "supervised": supervised,
        }
    )
