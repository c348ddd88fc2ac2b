"""Sharing the samples of one domain out among its clients, as pure functions on labels.

Each function returns one sorted array of positions per client; together they hold every
position exactly once.
"""

import numpy as np
from numpy.typing import NDArray

from foul.data.split import Rows, share_out
from foul.errors import UserError

# A client needs one sample to train on and one to validate with.
AT_LEAST = 2


def iid(
    labels: Rows, clients: int, rng: np.random.Generator, owner: str = "The data"
) -> list[Rows]:
    """Even shares: sizes, and counts of each class, differ by at most one between clients.

    Args:
        labels: the class of each sample.
        clients: how many shares.
        rng: where randomness comes from.
        owner: whose samples they are, for the error message.

    Raises:
        UserError: fewer samples than clients.
    """
    _require(len(labels), clients, 1, owner)
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    # Dealing starts at a random client, else the first ones always get the odd samples.
    first = int(rng.integers(clients))
    return [np.sort(by_class[(first + k) % clients :: clients]) for k in range(clients)]


def dirichlet(
    labels: Rows, clients: int, alpha: float, rng: np.random.Generator, owner: str = "The data"
) -> list[Rows]:
    """Skewed labels: each class is shared out by its own Dirichlet(alpha) draw.

    A client that would get fewer than two samples takes some from the largest.

    Args:
        labels: the class of each sample.
        clients: how many shares.
        alpha: concentration; near 0 a class goes to one client, large is even.
        rng: where randomness comes from.
        owner: whose samples they are, for the error message.

    Raises:
        UserError: fewer than two samples per client.
    """
    _require(len(labels), clients, AT_LEAST, owner)
    shares: list[list[int]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        sizes = share_out(len(rows), _proportions(alpha, clients, rng))
        for share, part in zip(shares, np.split(rows, np.cumsum(sizes)[:-1]), strict=True):
            share.extend(part.tolist())
    for share in shares:
        while len(share) < AT_LEAST:
            largest = max(shares, key=len)
            share.append(largest.pop(int(rng.integers(len(largest)))))
    return [np.sort(np.array(share, np.int64)) for share in shares]


def uneven(
    labels: Rows, clients: int, alpha: float, rng: np.random.Generator, owner: str = "The data"
) -> list[Rows]:
    """Uneven sizes: two samples each, the rest by a Dirichlet(alpha) draw; labels at random.

    Args:
        labels: the class of each sample.
        clients: how many shares.
        alpha: concentration; near 0 one client has nearly everything, large is even.
        rng: where randomness comes from.
        owner: whose samples they are, for the error message.

    Raises:
        UserError: fewer than two samples per client.
    """
    _require(len(labels), clients, AT_LEAST, owner)
    spare = len(labels) - AT_LEAST * clients
    sizes = AT_LEAST + share_out(spare, _proportions(alpha, clients, rng))
    rows = rng.permutation(len(labels))
    return [np.sort(part) for part in np.split(rows, np.cumsum(sizes)[:-1])]


def _proportions(alpha: float, clients: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A Dirichlet draw that stays finite where alpha is so small that all weights underflow."""
    draw: NDArray[np.float64] = rng.dirichlet(np.full(clients, alpha))
    if np.isfinite(draw).all() and draw.sum() > 0:
        return draw
    draw = np.zeros(clients)
    draw[rng.integers(clients)] = 1.0
    return draw


def _require(samples: int, clients: int, each: int, owner: str) -> None:
    if samples < each * clients:
        raise UserError(
            f"{owner} has {samples} images, too few for {clients} clients ({each} each at least)",
            f"Set clients.per_domain to {max(1, samples // each)} or less, or add images",
        )
