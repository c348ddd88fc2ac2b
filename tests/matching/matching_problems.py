"""Random matching problems and oracles for them: the formulas of the design, typed again."""

from dataclasses import dataclass

import clarabel
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from foul.matching import MatchingOptions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    deltas: Array
    forget: NDArray[np.bool_]
    options: MatchingOptions

    @property
    def gram(self) -> Array:
        return self.deltas @ self.deltas.T


@st.composite
def cases(draw: st.DrawFn, max_clients: int = 12, max_dimension: int = 30) -> Case:
    """Deltas of several kinds, some of them degenerate, under any options."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    clients = draw(st.integers(1, max_clients))
    dimension = draw(st.integers(1, max_dimension))
    kind = draw(st.sampled_from(["iid", "common", "domains", "repeated", "integers"]))
    deltas = rng.normal(size=(clients, dimension))
    if kind == "common":
        deltas += 3 * rng.normal(size=dimension)
    elif kind == "domains":
        deltas += 2 * rng.normal(size=(3, dimension))[np.arange(clients) % 3]
    elif kind == "repeated":
        deltas = deltas[rng.integers(0, max(clients // 2, 1), clients)]
    elif kind == "integers":
        deltas = np.round(deltas)
    forget = rng.random(clients) < 0.3
    forget[0] = False
    return Case(deltas, forget, draw(options()))


@st.composite
def options(draw: st.DrawFn) -> MatchingOptions:
    return MatchingOptions(
        kappa=draw(st.sampled_from([0.05, 0.3, 0.5, 0.9, 1.0, 2.0])),
        simplex=draw(st.sampled_from(["split", "joint"])),
        radius=draw(st.sampled_from(["kappa", "sqrt_kappa"])),
        radius_of=draw(st.sampled_from(["anchor", "mean_norm", "larger_mean"])),
        beta=draw(st.sampled_from([0.5, 1.0, 3.5])),
        forget=draw(st.sampled_from(["negated", "bounded"])),
        anchor=draw(st.sampled_from(["retain", "all"])),
        normalise=draw(st.sampled_from(["none", "retain_mean", "retain_least"])),
        rescale=draw(st.booleans()),
    )


@dataclass(frozen=True)
class Oracle:
    """The problem in the space of the deltas: no Gram matrix, no scaling."""

    signed: Array
    anchor: Array
    factor: float
    step: float
    reference: float
    groups: list[NDArray[np.intp]]

    @classmethod
    def of(cls, case: Case) -> "Oracle":
        chosen, forget = case.options, case.forget
        deltas = case.deltas.copy()
        norms = np.linalg.norm(deltas, axis=1)
        mean = norms[~forget].mean()
        brought = {"none": forget & ~forget, "retain_mean": norms > 0}.get(chosen.normalise)
        if brought is None:
            brought = (~forget | (norms < mean)) & (norms > 0)
        if mean > 0:
            deltas[brought] *= (mean / norms[brought])[:, None]
        used = ~forget if chosen.anchor == "retain" else np.ones_like(forget)
        anchor = deltas[used].mean(axis=0)
        sign = -chosen.beta if chosen.forget == "negated" else chosen.beta
        signed = deltas * np.where(forget, sign, 1.0)[:, None]
        means = [float(mean), float(norms[forget].mean()) if forget.any() else 0.0]
        reference = {
            "anchor": float(np.linalg.norm(anchor)),
            "mean_norm": means[0],
            "larger_mean": max(means),
        }[chosen.radius_of]
        kappa = chosen.kappa if chosen.radius == "kappa" else chosen.kappa**0.5
        groups = [np.flatnonzero(~forget), np.flatnonzero(forget)]
        if chosen.simplex == "joint":
            groups = [np.arange(len(forget))]
        groups = [group for group in groups if len(group)]
        return cls(signed, anchor, kappa * reference, chosen.kappa * reference, reference, groups)

    @property
    def scale(self) -> float:
        longest = float(np.linalg.norm(self.signed, axis=1).max())
        return max(float(np.linalg.norm(self.anchor)), self.reference) * longest

    def objective(self, weights: Array) -> float:
        """`<g, Dw> + c |Dw|`."""
        direction = weights @ self.signed
        return float(self.anchor @ direction + self.factor * np.linalg.norm(direction))

    def primal(self, update: Array) -> float:
        """`min_retain <d_u, x> + min_forget <s_v d_v, x>`."""
        slopes = self.signed @ update
        return float(sum(slopes[group].min() for group in self.groups))

    def best_primal(self) -> float:
        """max Phi over the ball of radius c, by Clarabel in the space of the updates.

        Scaled to 1, because Clarabel's tolerances are absolute.
        """
        clients, dimension = self.signed.shape
        longest = float(np.linalg.norm(self.signed, axis=1).max())
        unit = self.scale / longest
        blocks = np.zeros((clients, len(self.groups)))
        for number, group in enumerate(self.groups):
            blocks[group, number] = 1.0
        # variables x and one level per group: level - <s d_u, x> <= 0, |x - g| <= c
        rows = np.zeros((clients + 1 + dimension, dimension + len(self.groups)))
        rows[:clients, :dimension] = -self.signed / longest
        rows[:clients, dimension:] = blocks
        rows[clients + 1 :, :dimension] = -np.eye(dimension)
        limits = np.concatenate([np.zeros(clients), [self.factor / unit], -self.anchor / unit])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        size = rows.shape[1]
        solution = clarabel.DefaultSolver(
            sparse.csc_matrix((size, size)),
            np.concatenate([np.zeros(dimension), -np.ones(len(self.groups))]),
            sparse.csc_matrix(rows),
            limits,
            [clarabel.NonnegativeConeT(clients), clarabel.SecondOrderConeT(1 + dimension)],
            settings,
        ).solve()
        return -float(solution.obj_val) * self.scale
