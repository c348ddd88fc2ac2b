"""Statements to issue receipts for."""

from typing import Any

from foul.erasure.receipts import (
    Asked,
    Evidence,
    MethodUsed,
    Models,
    PurgeCheck,
    Purged,
    Statement,
)


def withdrawal(number: int = 1, **changed: Any) -> Statement:
    """The smallest one."""
    facts: dict[str, Any] = {
        "kind": "withdrawal",
        "event": f"withdrawal:R-{number:04d}",
        "federation": "clinics",
        "happened": "2026-11-16T06:00:00Z",
        "outcome": "The request was withdrawn.",
        "requests": [
            Asked(f"R-{number:04d}", "client:east-0", "2026-11-01T09:00:00Z", "2026-12-01")
        ],
    }
    return Statement(**(facts | changed))


def erasure(number: int = 1, **changed: Any) -> Statement:
    """One with everything."""
    facts: dict[str, Any] = {
        "kind": "erasure",
        "event": f"erasure:R-{number:04d}",
        "outcome": "The policy is met.",
        "clients": ["east-0"],
        "method": MethodUsed("foul", "0.1.0", {"rounds": 3, "kappa": 0.5, "loss": "bounded"}, 3),
        "models": Models("a" * 64, "b" * 64, "b" * 64),
        "evidence": [
            Evidence("mia_auc", "", 0.512, 0.47, 0.55, 0.61, at_most=0.6, passed=True),
            Evidence("fa", "", 0.41, before=0.97, retrain=0.4),
        ],
        "costs": {"rounds": 3, "bytes_down": 1_500_000, "seconds": 12.5, "flops_client": 2e9},
        "purged": [Purged("last update of east-0", "deleted", 1, 1200)],
        "purge_check": PurgeCheck("The store was searched for the id.", 41, 8_000_000, 0),
        "kept": ["The model before stays for 30 days."],
    }
    return withdrawal(number, **(facts | changed))
