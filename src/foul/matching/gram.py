"""The Gram matrix of the deltas and their weighted sum, streamed block by block.

The matching needs nothing of the deltas but their U x U products. Each block of coordinates is
multiplied in float32 and summed in float64: measured, that costs about as much as one plain
float32 product and errs by 2e-8 relative instead of 4e-6, while float64 throughout costs 2.4 times
as much. What is held beside the deltas is one block and the matrix, wherever the deltas live: in
one matrix (perhaps a memory map), in tensors of their own, or by parameter name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Weights = Sequence[float] | NDArray[np.float64]
Deltas = Tensor | Sequence[Tensor] | Sequence[Mapping[str, Tensor]]

BLOCK = 1 << 16
# Coordinates summed in float32: fewer lose fewer digits, and batched products cost the same.
_DEPTH = 1 << 14
# Entries of the products of all pieces of one call: 1 MB at most.
_PRODUCTS = 1 << 16
# A sum needs no buffer of its own, only room to widen half precision: large blocks, few calls.
_SUM_BLOCK = 1 << 22
# torch copies this many numbers in one thread: waiting for a second one costs more than it gains.
_GRAIN = 1 << 15
# Squares of float32 numbers below this lose digits to underflow.
_UNDERFLOW = 1e-30


@dataclass(frozen=True)
class Gram:
    """Products of the deltas.

    Attributes:
        values: the U x U matrix, float64, exactly symmetric. Rows of broken clients are not finite.
        finite: whether each client's delta is free of NaN and infinity. The caller leaves the
            others out, by name.
    """

    values: NDArray[np.float64]
    finite: NDArray[np.bool_]


def gram_flops(rows: Sequence[Mapping[str, Tensor]], sums: int) -> int:
    """What the products of all pairs and so many weighted sums of these rows take."""
    clients, numbers = len(rows), sum(tensor.numel() for tensor in rows[0].values())
    return (clients * (clients + 1) + 2 * sums * clients) * numbers


def gram_matrix(deltas: Deltas, block: int = BLOCK) -> Gram:
    """The Gram matrix of `deltas`, and which clients sent only finite numbers.

    Args:
        deltas: a matrix with one row per client, or one vector per client, or one mapping of
            parameter names to tensors per client (the same names and shapes for all).
        block: coordinates per block.
    """
    rows = _rows(deltas)
    clients = len(rows[0])
    total = torch.zeros(clients, clients, dtype=torch.float64)
    broken = torch.zeros(clients, dtype=torch.bool)
    # Views of one matrix cost no memory, so many blocks go into one call.
    many = max(1, _PRODUCTS // clients**2) if _as_matrix(rows) is not None else 1
    for part in blocks(deltas, block * many):
        product = _product(part, min(block, _DEPTH))
        if _out_of_range(product, part, broken):
            product = torch.zeros_like(total)
            for piece in torch.split(part, block, dim=1):
                wide = piece.to(torch.float64)
                product += (wide @ wide.T).cpu()
            broken |= ~torch.isfinite(product.diagonal())
        total += product
    values = ((total + total.T) / 2).numpy()
    return Gram(values, ~broken.numpy())


def _product(part: Tensor, depth: int) -> Tensor:
    """`part part'`, summed in float64 over pieces of `depth` coordinates, in one batched call."""
    whole = part.shape[1] // depth * depth
    rest = part[:, whole:]
    total = (rest @ rest.T).to(torch.float64)
    if whole:
        pieces = part[:, :whole].view(len(part), -1, depth).transpose(0, 1)
        total += torch.bmm(pieces, pieces.transpose(1, 2)).sum(dim=0, dtype=torch.float64)
    return total.cpu()


@overload
def weighted_sum(weights: Weights, deltas: Tensor | Sequence[Tensor]) -> Tensor: ...
@overload
def weighted_sum(weights: Weights, deltas: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]: ...
def weighted_sum(weights: Weights, deltas: Deltas) -> Tensor | dict[str, Tensor]:
    """`sum_u weights[u] deltas[u]` in float32, block by block, in the form of one delta.

    A client of weight 0 does not count even if its delta is not finite, so that is how the caller
    leaves a broken client out.
    """
    rows = _rows(deltas)
    if len(weights) != len(rows[0]):
        raise ValueError(f"{len(weights)} weights for {len(rows[0])} deltas: give one per client.")
    sums = [_weighted_sum(weights, row) for row in rows]
    if isinstance(deltas[0], Mapping):
        return dict(zip(deltas[0], sums, strict=True))
    return sums[0]


def _weighted_sum(weights: Weights, tensors: Sequence[Tensor]) -> Tensor:
    matrix = _as_matrix([tensors])
    if matrix is not None:
        factors = torch.as_tensor(weights, dtype=matrix.dtype, device=matrix.device)
        total = torch.mv(matrix.T, factors)
        # One product is fastest, but 0 times a NaN is a NaN: then sum without the broken rows.
        if torch.isfinite(total.sum()):
            return total.to(torch.float32)
    total = torch.zeros(tensors[0].numel(), device=tensors[0].device)
    for weight, tensor in zip(weights, tensors, strict=True):
        for piece, part in zip(
            torch.split(total, _SUM_BLOCK), torch.split(tensor.reshape(-1), _SUM_BLOCK), strict=True
        ):
            if weight != 0:
                piece.add_(part, alpha=float(weight))
    return total.reshape(tensors[0].shape)


def blocks(deltas: Deltas, width: int) -> Iterator[Tensor]:
    """`deltas` cut into U x width matrices; the last one may be narrower.

    Blocks are float32 (float64 if a delta is), and valid until the next one is asked for: rows of
    one matrix are cut without a copy, everything else is gathered in a single buffer.
    """
    rows = _rows(deltas)
    matrix = _as_matrix(rows)
    if matrix is not None:
        yield from torch.split(matrix, width, dim=1)
        return
    wide = any(tensor.dtype == torch.float64 for row in rows for tensor in row)
    length = sum(row[0].numel() for row in rows)
    buffer = torch.empty(
        len(rows[0]),
        min(width, length),
        dtype=torch.float64 if wide else torch.float32,
        device=rows[0][0].device,
    )
    filled = 0
    for row in rows:
        size, start = row[0].numel(), 0
        while start < size:
            count = min(width - filled, size - start, _GRAIN)
            for client, tensor in enumerate(row):
                piece = tensor.reshape(-1)[start : start + count]
                buffer[client, filled : filled + count].copy_(piece)
            filled, start = filled + count, start + count
            if filled == width:
                yield buffer
                filled = 0
    if filled:
        yield buffer[:, :filled]


def _rows(deltas: Deltas) -> list[Sequence[Tensor]]:
    """The tensors of all clients, parameter by parameter."""
    if len(deltas) == 0:
        raise ValueError("No deltas: at least one client is needed.")
    rows = _unchecked_rows(deltas)
    for row in rows:
        if len(row) != len(deltas) or len({tensor.shape for tensor in row}) > 1:
            raise ValueError("The deltas differ in shape: send the same scope for all.")
    if not any(row[0].numel() for row in rows):
        raise ValueError("The deltas have no coordinates: the unlearning scope is empty.")
    return rows


def _unchecked_rows(deltas: Deltas) -> list[Sequence[Tensor]]:
    if isinstance(deltas, Tensor):
        if deltas.dim() != 2:
            raise ValueError(f"A tensor of deltas must have 2 dimensions, not {deltas.dim()}.")
        return [deltas.unbind()]
    if isinstance(deltas[0], Tensor):
        return [[delta for delta in deltas if isinstance(delta, Tensor)]]
    mappings = [delta for delta in deltas if isinstance(delta, Mapping)]
    if any(mapping.keys() != mappings[0].keys() for mapping in mappings):
        raise ValueError("The deltas name different parameters: send the same scope for all.")
    return [[mapping[name] for mapping in mappings] for name in mappings[0]]


def _as_matrix(rows: list[Sequence[Tensor]]) -> Tensor | None:
    """The deltas as one float matrix without a copy, if they already lie in memory like that."""
    first, *others = rows[0]
    if len(rows) > 1 or first.dtype not in (torch.float32, torch.float64):
        return None
    if first.dim() != 1 or first.stride() != (1,):
        return None
    memory = first.untyped_storage().data_ptr()
    steps = {
        (second.storage_offset() - one.storage_offset(), second.untyped_storage().data_ptr())
        for one, second in zip(rows[0], others, strict=False)
    }
    same = all(other.dtype == first.dtype and other.stride() == (1,) for other in others)
    if not others:
        return first.unsqueeze(0)
    (step, place), *different = steps
    if different or place != memory or step < len(first) or not same:
        return None
    return first.as_strided((len(rows[0]), len(first)), (step, 1))


def _out_of_range(product: Tensor, part: Tensor, broken: Tensor) -> bool:
    """Whether a float32 product overflowed or underflowed for a client not known to be broken."""
    squares = product.diagonal()
    if part.dtype == torch.float64:
        return not bool(torch.isfinite(squares[~broken]).all())
    suspects = ~(torch.isfinite(squares) & (squares >= _UNDERFLOW)) & ~broken
    # Clients whose block is simply 0 are no suspects; only the few with small squares are read.
    return any(bool(part[client].any()) for client in suspects.nonzero().flatten().tolist())
