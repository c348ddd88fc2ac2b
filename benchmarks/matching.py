"""What the matching costs beside its peers: `python benchmarks/matching.py [--json FILE]`.

Repetitions of the rivals are interleaved, so that a busy moment hits them alike, and medians are
compared. torchjd's CAGrad needs cvxpy (`pip install "torchjd[cagrad]"`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from foul.matching import (
    gram_matrix,
    match,
    match_sketches,
    sharpen,
    sketch,
    weighted_sum,
)
from foul.matching.convex import Problem
from foul.matching.gram import BLOCK
from foul.matching.simplex import project_simplex
from foul.matching.solver import solve

Array = NDArray[np.float64]
Row = dict[str, Any]


def interleaved(rivals: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median seconds of each rival, called in turn; the first turn only warms up."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(repetitions + 1):
        for name, rival in rivals.items():
            start = perf_counter()
            rival()
            if turn:
                times[name].append(perf_counter() - start)
    return {name: median(seconds) for name, seconds in times.items()}


def domain_deltas(clients: int, length: int, seed: int = 0) -> torch.Tensor:
    """Four domains of clients, a common direction, and noise of each client."""
    generator = torch.Generator().manual_seed(seed)
    deltas = torch.randn(clients, length, generator=generator)
    deltas += 0.5 * torch.randn(length, generator=generator)
    domains = torch.randn(4, length, generator=generator)
    for domain, rows in enumerate(deltas.chunk(4)):
        rows += 0.5 * domains[domain]
    return deltas


def forget_last_domain(clients: int) -> NDArray[np.bool_]:
    return np.arange(clients) >= clients - clients // 4


def whole_round(repetitions: int) -> Row:
    """20 clients x 4.2 M parameters: everything the server does, beside two plain products."""
    deltas, forget = domain_deltas(20, 4_200_000), forget_last_domain(20)
    separate = [row.clone() for row in deltas]
    plain_weights = torch.rand(20)

    def ours(given: torch.Tensor | list[torch.Tensor]) -> torch.Tensor:
        return weighted_sum(match(gram_matrix(given).values, forget).weights, given)

    def plain() -> torch.Tensor:
        products = deltas @ deltas.T
        return plain_weights @ deltas + products[0, 0]

    times = interleaved(
        {
            "plain": plain,
            "ours": lambda: ours(deltas),
            "separate": lambda: ours(separate),
            "gram": lambda: gram_matrix(deltas),
            "solve": lambda: match(gram_matrix(deltas[:, :BLOCK]).values, forget),
            "sum": lambda: weighted_sum(plain_weights.tolist(), deltas),
        },
        repetitions,
    )
    return {
        "name": "20 clients x 4.2 M: Gram + solve + sum, against D @ D.T and w @ D",
        "target": "ratio <= 1.2",
        "ratio": times["ours"] / times["plain"],
        "met": times["ours"] <= 1.2 * times["plain"],
        "ratio_deltas_in_separate_tensors": times["separate"] / times["plain"],
        **{f"{name}_s": seconds for name, seconds in times.items()},
    }


def cagrad_problem(clients: int) -> Problem:
    """No forget client and a uniform anchor: what all three solvers can solve. Scaled to 1."""
    deltas = domain_deltas(clients, 20 * clients).double().numpy()
    gram = deltas @ deltas.T
    gram /= gram.diagonal().max()
    pulls = gram.mean(axis=1)
    return Problem(gram, pulls, 0.5 * float(pulls.mean()) ** 0.5, np.zeros(clients, np.intp))


def relative_gap(problem: Problem, weights: Array) -> float:
    """`(w . grad F - min grad F) / (|g| max |d|)` at the feasible point nearest to `weights`."""
    weights = project_simplex(weights)
    image = problem.quadratic @ weights
    gradient = problem.linear + problem.radius * image / float(weights @ image) ** 0.5
    return float(weights @ gradient - gradient.min()) / (2 * problem.radius)


def solver_alone(repetitions: int) -> list[Row]:
    """100 clients: our solver, torchjd's CAGrad weighting, SciPy's SLSQP (with the gradient)."""
    from torchjd.aggregation import CAGradWeighting

    problem = cagrad_problem(100)
    gram, clients = problem.quadratic, 100
    tensor, weighting = torch.from_numpy(gram), CAGradWeighting(c=0.5)
    uniform = np.full(clients, 1 / clients)

    def value(weights: Array) -> float:
        squared = float(weights @ gram @ weights)
        return float(problem.linear @ weights + problem.radius * squared**0.5)

    def slope(weights: Array) -> Array:
        image = gram @ weights
        gradient: Array = problem.linear + problem.radius * image / float(weights @ image) ** 0.5
        return gradient

    def slsqp(tolerance: float) -> Array:
        result = minimize(
            value,
            uniform,
            jac=slope,
            method="SLSQP",
            bounds=[(0, 1)] * clients,
            constraints=[
                {
                    "type": "eq",
                    "fun": lambda weights: weights.sum() - 1,
                    "jac": lambda _: np.ones(clients),
                }
            ],
            options={"ftol": tolerance, "maxiter": 1000},
        )
        return np.asarray(result.x)

    def torchjd() -> Array:
        excess = weighting(tensor).numpy() - uniform
        return np.asarray(excess / excess.sum())

    solvers: dict[str, Callable[[], Array]] = {
        "ours": lambda: solve(problem).weights,
        "torchjd": torchjd,
        "slsqp": lambda: slsqp(1e-12),
        "slsqp_default": lambda: slsqp(1e-6),
    }
    gaps = {name: relative_gap(problem, solver()) for name, solver in solvers.items()}
    # One BLAS thread for all: ours uses one anyway, and more only slow the others down.
    with threadpool_limits(limits=1, user_api="blas"):
        times = interleaved(dict(solvers), repetitions)
    rows = []
    for peer, target in (("torchjd", 5), ("slsqp", 20), ("slsqp_default", 0)):
        ratio = times[peer] / times["ours"]
        rows.append(
            {
                "name": f"100 clients, solver alone, against {peer}",
                "target": f"{target} times faster, smaller gap" if target else "for information",
                "ratio": ratio,
                "met": ratio >= target and gaps["ours"] <= gaps[peer],
                "ours_s": times["ours"],
                "peer_s": times[peer],
                "ours_gap": gaps["ours"],
                "peer_gap": gaps[peer],
            }
        )
    return rows


def thousand_clients(repetitions: int) -> Row:
    deltas = domain_deltas(1000, 4000).double().numpy()
    gram, forget = deltas @ deltas.T, forget_last_domain(1000)
    matching = match(gram, forget)
    seconds = interleaved({"match": lambda: match(gram, forget)}, repetitions)["match"]
    return {
        "name": "1,000 clients from their Gram matrix",
        "target": "relative gap 1e-6 within 0.2 s",
        "met": seconds <= 0.2 and matching.relative_gap <= 1e-6,
        "seconds": seconds,
        "relative_gap": matching.relative_gap,
        "factorisations": matching.iterations,
    }


def exact_loss(deltas: torch.Tensor, forget: NDArray[np.bool_], weights: Array) -> Row:
    """F and its gap at given simplex weights, from the deltas themselves, in float64 sums."""
    signs = np.where(forget, -1.0, 1.0)
    anchor = weighted_sum(np.where(forget, 0.0, 1 / (~forget).sum()), deltas).double()
    direction = weighted_sum(signs * weights, deltas).double()
    length, reach = float(anchor.norm()), float(direction.norm())
    update = anchor + 0.5 * length * direction / reach
    slopes = (deltas @ update.float()).double().numpy() * signs
    value = float(anchor @ direction) + 0.5 * length * reach
    scale = length * float(deltas.norm(dim=1).max())
    gap = value - slopes[~forget].min() - slopes[forget].min()
    return {"value": value / scale, "gap": gap / scale}


def sharpened(sketches: torch.Tensor, deltas: torch.Tensor, forget: NDArray[np.bool_]) -> Array:
    shares = np.where(forget, 0.0, 1 / (~forget).sum())
    return sharpen(sketches, shares, (deltas @ weighted_sum(shares, deltas)).double().numpy())


def sketched(clients: int, length: int, dimension: int) -> Row:
    """Sketch, solve without a Gram matrix, and what that loses against the deltas themselves."""
    deltas, forget = domain_deltas(clients, length), forget_last_domain(clients)
    start = perf_counter()
    sketches = sketch(deltas, dimension, seed=0)
    made = perf_counter()
    rows = sharpened(sketches, deltas, forget)
    sharp = perf_counter()
    matching = match_sketches(rows, forget)
    done = perf_counter()
    row: Row = {
        "name": f"{clients:,} clients x {length:,} through sketches of {dimension:,}",
        "target": "loss of objective measured",
        "sketch_s": made - start,
        "exact_products_with_the_anchor_s": sharp - made,
        "solve_s": done - sharp,
        "relative_gap_of_the_sketched_problem": matching.relative_gap,
        "clients_with_weight": int((matching.simplex_weights > 0).sum()),
        "bound_on_loss": exact_loss(deltas, forget, matching.simplex_weights)["gap"],
    }
    # The exact optimum is affordable for a subset: every k-th client, the same sketches.
    some = np.arange(0, clients, max(clients // 2000, 1))
    subset, kept = deltas[some], forget[some]
    exact = match(gram_matrix(subset).values, kept)
    through = match_sketches(sharpened(sketches[some], subset, kept), kept)
    plain = match_sketches(sketches[some], kept)
    best = exact_loss(subset, kept, exact.simplex_weights)["value"]
    uniform = np.where(kept, 1 / kept.sum(), 1 / (~kept).sum())
    row["subset"] = len(some)
    row["subset_best"] = best
    row["subset_loss"] = exact_loss(subset, kept, through.simplex_weights)["value"] - best
    row["subset_loss_of_sketches_alone"] = (
        exact_loss(subset, kept, plain.simplex_weights)["value"] - best
    )
    row["subset_loss_of_uniform_weights"] = exact_loss(subset, kept, uniform)["value"] - best
    return row


def peak_memory() -> Row:
    """Memory held beside deltas on disk, watched in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deltas.bin"
        domain_deltas(20, 4_200_000).numpy().tofile(path)
        output = subprocess.run(
            [sys.executable, __file__, "--measure-memory", str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    measured: Row = json.loads(output)
    block_mb = 20 * BLOCK * 4 / 2**20
    return {
        "name": "20 clients x 4.2 M on disk: memory of the streamed Gram matrix",
        "target": f"two blocks ({2 * block_mb:.0f} MB) and the Gram matrix",
        "met": measured["extra_mb"] <= 2 * block_mb + 2,
        "deltas_mb": 20 * 4_200_000 * 4 / 2**20,
        **measured,
    }


def measure_memory(path: str) -> None:
    """In a process of its own: read the deltas block by block, never as a whole."""

    def anonymous() -> float:
        """Resident memory without pages of files, which the system can drop at any time."""
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    # Vectors that are no rows of one matrix take the path with the buffer: the one that needs most.
    torch.set_num_threads(2)
    gram_matrix([torch.randn(1000) for _ in range(20)])
    mapped = [
        torch.from_file(path, size=20 * 4_200_000).reshape(20, -1)[client] for client in range(20)
    ]
    before, top = anonymous(), 0.0
    stop = Event()

    def watch() -> None:
        nonlocal top
        while not stop.wait(0.0005):
            top = max(top, anonymous())

    watcher = Thread(target=watch)
    watcher.start()
    gram_matrix(mapped)
    stop.set()
    watcher.join()
    print(json.dumps({"extra_mb": top - before}))


def show(row: Row) -> None:
    verdict = {True: "  [met]", False: "  [NOT MET]"}.get(row.get("met", ""), "")
    print(f"{row['name']}\n    target: {row['target']}{verdict}")
    for key, value in row.items():
        if key not in ("name", "target", "met"):
            print(
                f"    {key:40} {value:.4g}" if isinstance(value, float) else f"    {key:40} {value}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--measure-memory", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_memory:
        measure_memory(arguments.measure_memory)
        return
    torch.set_num_threads(2)
    rows = [whole_round(arguments.repetitions)]
    rows += solver_alone(3 * arguments.repetitions)
    rows.append(thousand_clients(arguments.repetitions))
    rows += [sketched(10_000, 16_384, dimension) for dimension in (1024, 4096)]
    rows.append(peak_memory())
    for row in rows:
        show(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
