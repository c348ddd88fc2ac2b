"""Receipts of what the ledger tells: each is given once and noted."""

from collections.abc import Iterator

from foul.erasure import statements
from foul.erasure.receipts import Statement, issue_receipt
from foul.erasure.state import State
from foul.erasure.store import Store


def issue(store: Store, request: int | None, statement: Statement) -> None:
    """Give a receipt and note it; what is there already is not given twice."""
    receipt = issue_receipt(store.path, statement)
    known = [entry.body for entry in store.entries() if entry.kind == "issued"]
    if receipt.number not in [body["receipt"] for body in known]:
        body = {"request": request, "receipt": receipt.number, "sha256": receipt.sha256}
        store.append("issued", {**body, "event": statement.event})


def issue_missing(store: Store, state: State) -> None:
    """Receipts of what was noted and has none yet, because it just happened or a kill came first;
    those of erasures are given by their job."""
    given = {entry.body["event"] for entry in store.entries() if entry.kind == "issued"}
    for request, statement in _owed(state):
        if statement.event not in given:
            issue(store, request, statement)


def _owed(state: State) -> Iterator[tuple[int | None, Statement]]:
    for request in state.requests.values():
        if request.state == "withdrawn":
            yield request.number, statements.withdrawal(state, request)
    for body in state.readmitted:
        yield None, statements.readmission(state, body)
    for told in state.verified:
        yield told["request"], statements.verification(state, told)
