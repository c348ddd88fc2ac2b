"""Receipts of what the ledger tells: each is given once and noted."""

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
    """Receipts of withdrawals and readmissions that a kill prevented."""
    given = {entry.body["event"] for entry in store.entries() if entry.kind == "issued"}
    statement: Statement
    for request in state.requests.values():
        if request.state == "withdrawn":
            statement = statements.withdrawal(state, request)
            if statement.event not in given:
                issue(store, request.number, statement)
    for body in state.readmitted:
        if statements.readmission_event(body) not in given:
            issue(store, None, statements.readmission(state, body))
