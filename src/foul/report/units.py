"""Quantities in a unit that reads well."""


def size(count: float) -> str:
    """Bytes in a unit that reads well."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def operations(count: float) -> str:
    """FLOPs in a unit that reads well."""
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "FLOP" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} PFLOP"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
