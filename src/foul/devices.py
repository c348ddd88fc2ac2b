"""Which device and how many threads."""

import os

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


def set_threads(threads: int) -> int:
    """Use this many CPU threads (0: one per core that this process may use)."""
    count = threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(count)
    return count
