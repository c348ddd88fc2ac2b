"""Where a client has been: rounds, model versions, and what is stored about it now."""

from typing import Any

from foul.erasure.inventory import about
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.errors import UserError
from foul.names import find, hint

TOLD = {
    "trained": "it took part in the training of this model or of one it descends from",
    "unlearned": "it descends from a model that it took part in, and was then unlearned",
    "": "it took no part in this model or in any that it descends from",
}


def lineage(store: Store, client: str) -> dict[str, Any]:
    """Every model version that a client ever touched, and how.

    Raises:
        UserError: there is no such client; names the nearest.
    """
    state = store.state()
    known = find(client, state.clients)
    if known is None:
        raise UserError(
            f"There is no client '{client}' in {store.folder.path}", hint(client, state.clients)
        )
    found = state.clients[known]
    return {
        "client": known,
        "domain": found.domain,
        "samples": found.samples,
        "status": found.status,
        "since": found.since,
        "rounds": [list(span) for span in found.rounds],
        "versions": _versions(state, known),
        "requests": [
            {"id": request.id, "state": request.state, "receipts": list(request.receipts)}
            for request in state.requests.values()
            if known in request.clients
        ],
        "readmissions": [body for body in state.readmitted if body["client"] == known],
        "stored": [item.to_dict() for item in about(store.folder, known, state.clients)],
    }


def _versions(state: State, client: str) -> list[dict[str, Any]]:
    return [
        {
            "number": version.number,
            "hash": version.hash,
            "origin": version.origin,
            "method": version.method,
            "made": version.made,
            "how": version.traces.get(client, ""),
            "meaning": TOLD[version.traces.get(client, "")],
            "in_service": version.number == state.current.number,
        }
        for version in state.versions
    ]
