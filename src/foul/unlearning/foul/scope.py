"""What of the network travels and changes, and what is frozen."""

import re
from collections.abc import Collection, Iterable, Mapping

from torch import Tensor

from foul.federation.messages import Tensors
from foul.models import DEPLOYED, part_of
from foul.unlearning.foul.options import FoulOptions
from foul.unlearning.method import Case

UNUSED = "V.logvar."
"""V's log variance serves reconstruction only: no answer depends on it."""
_STAGE = re.compile(r"V\.layer(\d+)\.")


def scope_of(options: FoulOptions, case: Case, tensors: Tensors) -> Tensors:
    """What travels and changes, without running statistics: their mean needs no matching."""
    return in_scope(options, {n: t for n, t in tensors.items() if n not in case.buffers})


def in_scope(options: FoulOptions, parameters: Mapping[str, Tensor]) -> Tensors:
    """Those of these parameters that may change."""
    still = square_convolutions(parameters) if options.still == "square" else ()
    return {
        name: tensor
        for name, tensor in parameters.items()
        if part_of(name) in options.scope and name not in still and not name.startswith(UNUSED)
    }


def frozen_of(options: FoulOptions, case: Case) -> Tensors:
    """What is deployed and does not change: V's running statistics are fixed too."""
    scope = scope_of(options, case, case.learned)
    return {
        name: tensor
        for name, tensor in case.learned.items()
        if part_of(name) in DEPLOYED and name not in scope and not name.startswith(UNUSED)
    }


def stages_of(tensors: Iterable[str]) -> dict[str, int]:
    """The stage of each of these tensors that belongs to one of V's."""
    return {name: int(found[1]) for name in tensors if (found := _STAGE.match(name))}


def square_convolutions(tensors: Mapping[str, Tensor]) -> Collection[str]:
    """V's convolutions with as many inputs as outputs in its last stage: half of its weights or
    more, and what lies in front of them and behind can do their part. None if V has one stage."""
    stages = stages_of(tensors)
    last = max(stages.values(), default=0)
    # And torch 2.13's channels-last GroupNorm crashes if its weights need a gradient and nothing in
    # front of it does.
    if min(stages.values(), default=0) == last:
        return ()
    return {
        name
        for name, stage in stages.items()
        if stage == last
        and tensors[name].ndim == 4
        and tensors[name].shape[0] == tensors[name].shape[1]
    }
