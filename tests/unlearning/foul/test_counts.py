import math

import numpy as np
import pytest

from foul.unlearning.foul.counts import Counts


def test_counts_add_up() -> None:
    total = sum([Counts(1, 2), Counts(3, 6)], Counts())
    assert (total, total.share, Counts().share) == (Counts(4, 8), 0.5, 0.0)


@pytest.mark.parametrize(("correct", "samples"), [(3, 4), (90, 100), (0, 7), (7, 7)])
def test_standard_error_of_a_share(correct: int, samples: int) -> None:
    """That of the mean of zeros and ones."""
    answers = np.repeat([1.0, 0.0], [correct, samples - correct])
    expected = answers.std() / math.sqrt(samples)
    assert Counts(correct, samples).standard_error == pytest.approx(expected)
    assert Counts().standard_error == 0.0
