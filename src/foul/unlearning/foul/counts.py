"""How many answers were right, and how sure that makes us."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """Correct answers among samples."""

    correct: int = 0
    samples: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.correct + other.correct, self.samples + other.samples)

    @property
    def share(self) -> float:
        return self.correct / max(1, self.samples)

    @property
    def standard_error(self) -> float:
        """Of the share."""
        return math.sqrt(self.share * (1 - self.share) / max(1, self.samples))

    @property
    def logit(self) -> float:
        """Of the share of correct answers, kept finite by half an answer on either side."""
        return math.log((self.correct + 0.5) / (self.samples - self.correct + 0.5))
