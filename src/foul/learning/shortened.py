"""The learning stage from scratch, in fewer rounds."""

from foul.config.schema import LearningConfig


def shortened(config: LearningConfig, rounds: int, usual: int) -> LearningConfig:
    """The recipe for these rounds instead of the usual number; batch statistics are fixed after the
    same share of them. Without an early stop."""
    after = config.fix_statistics_after
    if after > 0:
        after = max(1, round(after * rounds / max(1, usual)))
    return config.model_copy(
        update={"rounds": rounds, "patience": 0, "fix_statistics_after": after}
    )
