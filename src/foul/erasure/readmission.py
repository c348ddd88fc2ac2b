"""An erased client may take part again, if somebody says why."""

from foul.erasure.issuing import issue_missing
from foul.erasure.records import Client
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.errors import UserError
from foul.names import find, hint


def readmit(store: Store, client: str, reason: str) -> Client:
    """Lift the tombstone of a client; it knows nothing of the model until it is learned again.

    Raises:
        UserError: it was not erased, there is no reason, or an erasure is under way.
    """
    if not reason.strip():
        raise UserError("A readmission needs a reason", "Say why with --reason.")

    def decide(state: State) -> dict[str, object]:
        # Among all clients: somebody else's name must not lift the tombstone of a similar one.
        known = find(client, state.clients)
        if known not in state.erased:
            names = ", ".join(sorted(state.erased)) or "nobody"
            near = hint(client, state.erased) if state.erased else ""
            raise UserError(f"Client '{client}' is not erased (erased: {names})", near)
        if state.unfinished:
            raise UserError(
                f"Job {state.unfinished.number} was interrupted and comes first",
                f"Go on with it: foul erase run {store.folder.path}",
            )
        return {"client": known, "reason": reason}

    with store.serving():
        entry = store.decide("readmitted", decide)
        state = store.sync()
        issue_missing(store, state)
    return state.clients[entry.body["client"]]
