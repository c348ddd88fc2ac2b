"""What can be chosen about the matching, and what comes out of it."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Simplex = Literal["split", "joint"]
Radius = Literal["kappa", "sqrt_kappa"]
RadiusOf = Literal["anchor", "mean_norm", "larger_mean"]
Forget = Literal["negated", "bounded"]
Anchor = Literal["retain", "all"]
Normalise = Literal["none", "retain_mean", "retain_least"]
Flag = Literal["ok", "no_direction", "no_anchor"]


@dataclass(frozen=True)
class MatchingOptions:
    """The choices of the matching problem; those of the paper keep their names.

    Attributes:
        kappa: radius of the ball around the anchor g, as a share of |g|. From 1 on, the ball holds
            the origin, and `<x, g> > 0` is no longer guaranteed.
        simplex: `split` (retain weights sum to 1, and forget weights too: what the proof derives)
            or `joint` (all weights together sum to 1, as the theorem is printed).
        radius: `kappa` (what the proof derives) or `sqrt_kappa` (as the theorem is printed). The
            latter changes the factor in F only; the step stays kappa |g|, so x solves no primal
            problem and the gap speaks of F alone.
        radius_of: `anchor` (|g|), `mean_norm` (mean norm of the retain deltas, which does not
            shrink to 0 when retain clients pull in different directions), or `larger_mean` (of
            that and the forget deltas' mean norm: retain clients that fit all their data send
            next to nothing).
        beta: weight of the forget term. In the paper's proof, missing from its theorem.
        forget: `negated` if forget clients sent ordinary descent deltas (the paper: they count
            with a minus), `bounded` if they descended a bounded unlearning loss (with a plus).
        anchor: `retain` (g is the mean of the retain deltas) or `all` (the paper).
        normalise: `retain_mean` first brings every delta to the retain clients' mean norm;
            `retain_least` does so to those of the retain clients, and to shorter ones of forget
            clients; longer ones keep their length.
        rescale: divide the update by 1 + kappa^2, as the authors' code does.
    """

    kappa: float = 0.5
    simplex: Simplex = "split"
    radius: Radius = "kappa"
    radius_of: RadiusOf = "anchor"
    beta: float = 1.0
    forget: Forget = "negated"
    anchor: Anchor = "retain"
    normalise: Normalise = "none"
    rescale: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.kappa) and self.kappa >= 0):
            raise ValueError(f"kappa is {self.kappa}: use a finite number, 0 or more.")
        if not (isfinite(self.beta) and self.beta > 0):
            raise ValueError(f"beta is {self.beta}: use a finite number above 0.")
        _check("simplex", self.simplex, Simplex)
        _check("radius", self.radius, Radius)
        _check("radius_of", self.radius_of, RadiusOf)
        _check("forget", self.forget, Forget)
        _check("anchor", self.anchor, Anchor)
        _check("normalise", self.normalise, Normalise)

    @property
    def sign(self) -> float:
        """The factor s of a forget client's delta."""
        return -self.beta if self.forget == "negated" else self.beta


def _check(name: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        listed = " or ".join(repr(choice) for choice in get_args(choices))
        raise ValueError(f"{name} is {value!r}: use {listed}.")


@dataclass(frozen=True)
class Matching:
    """The update, as one number per client, and how close to optimal it is.

    Attributes:
        weights: `x = sum_u weights[u] d_u` with the deltas as they came: the anchor's part, the
            correction's part, the normalisation and the rescaling are all in this number.
        simplex_weights: the minimiser w of F.
        objective: F(w).
        primal: Phi of the best point known in the ball, at most the minimum of F. None with
            `radius="sqrt_kappa"`, which is no dual of the update's ball.
        gap: at least `F(w) - min F`. It is `F(w) - Phi(x)`, and equals the Frank-Wolfe gap.
        relative_gap: gap in units of |g| max |s d| (with a mean norm, of max(|g|, mean norm)
            max |s d|), because the minimum itself can be 0.
        iterations: factorisations.
        flag: `ok`; `no_direction`: F is least where Dw = 0, so there is no direction to correct g
            in, and x = g; `no_anchor`: g = 0, the ball is a point, and x = 0.
        cosines: `<x, d_u> / (|x| |d_u|)`; 0 where a norm is 0.
        anchor_norm: |g| (of the normalised deltas, if they are).
        update_norm: |x|.
    """

    weights: NDArray[np.float64]
    simplex_weights: NDArray[np.float64]
    objective: float
    primal: float | None
    gap: float
    relative_gap: float
    iterations: int
    flag: Flag
    cosines: NDArray[np.float64]
    anchor_norm: float
    update_norm: float
