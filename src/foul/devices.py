"""Which device, and how the work is spread over cores."""

import multiprocessing
import os
from dataclasses import dataclass

import torch

from foul.errors import UserError


def pick_device(wish: str) -> torch.device:
    """The device for this wish; `auto` takes a GPU if there is one.

    Raises:
        UserError: the device is not there.
    """
    if wish == "auto":
        wish = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(wish)
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }[device.type]
    if not there:
        raise UserError(f"device={wish} is not available here", "Use device=cpu or device=auto.")
    return device


@dataclass(frozen=True)
class CpuPlan:
    """How local work is spread over cores: processes, and torch threads in each."""

    workers: int
    threads: int


def plan_cpu(workers: int, threads: int, device: torch.device) -> CpuPlan:
    """Fill in what is 0: a worker per core on a CPU, one in all for a GPU or for several threads.

    Several workers have one thread each: a fork takes no threads along, and GNU OpenMP would
    wait for them forever in the child.

    Raises:
        UserError: several workers of several threads, or on a GPU.
    """
    cores = usable_cores()
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    spread = device.type == "cpu" and can_fork and threads <= 1
    count = workers or (cores if spread else 1)
    if count > 1 and threads > 1:
        raise UserError(
            f"workers={count} cannot have threads={threads} each",
            "Use workers of one thread (which is faster), or workers=1.",
        )
    if count > 1 and device.type != "cpu":
        raise UserError(f"workers={count} cannot share device={device}", "Use workers=1.")
    return CpuPlan(count, threads or (cores if count == 1 else 1))


def usable_cores() -> int:
    """The cores this process may use; all of them where the system does not say (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
