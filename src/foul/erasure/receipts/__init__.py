"""Receipts: what was done about a request, signed, chained, and checked without the store."""

from foul.erasure.receipts.check import Verdict, check_receipt
from foul.erasure.receipts.issue import (
    Receipt,
    find_receipt,
    issue_receipt,
    require_signing,
    rotate_key,
)
from foul.erasure.receipts.statement import (
    Asked,
    Evidence,
    MethodUsed,
    Models,
    PurgeCheck,
    Purged,
    Statement,
)

__all__ = [
    "Asked",
    "Evidence",
    "MethodUsed",
    "Models",
    "PurgeCheck",
    "Purged",
    "Receipt",
    "Statement",
    "Verdict",
    "check_receipt",
    "find_receipt",
    "issue_receipt",
    "require_signing",
    "rotate_key",
]
