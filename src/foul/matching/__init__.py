"""Gradient matching on the server: the Gram matrix of the deltas, and the update it decides."""

from foul.matching.gram import Gram, gram_flops, gram_matrix, weighted_sum
from foul.matching.match import match
from foul.matching.problem import Matching, MatchingOptions
from foul.matching.sketch import match_sketches, sharpen, sketch

__all__ = [
    "Gram",
    "Matching",
    "MatchingOptions",
    "gram_flops",
    "gram_matrix",
    "match",
    "match_sketches",
    "sharpen",
    "sketch",
    "weighted_sum",
]
