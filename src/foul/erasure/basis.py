"""What learning took, as its run measured it: the ground on which costs are estimated."""

from collections import defaultdict
from typing import Any

from foul.runs.folder import RunFolder

_KEYS = ("bytes_down", "bytes_up", "flops_client", "seconds")


def measured_basis(folder: RunFolder) -> dict[str, Any]:
    """Means over the rounds of learning: per client and round, per round on the server and the
    clock; noted in the ledger, because a purge takes clients out of the records."""
    records = [record for record in folder.records() if record["stage"] == "learning"]
    sums: defaultdict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_KEYS, 0.0))
    counts: defaultdict[str, int] = defaultdict(int)
    for record in records:
        for client, cost in record["costs"].items():
            counts[client] += 1
            for key in _KEYS:
                sums[client][key] += cost[key]
    rounds = max(1, len(records))
    return {
        "clients": {
            client: {key: value / counts[client] for key, value in costs.items()}
            for client, costs in sums.items()
        },
        "clients_per_round": sum(counts.values()) / rounds,
        "wall_seconds": sum(record["seconds"] for record in records) / rounds,
        "flops_server": sum(record.get("flops_server", 0) for record in records) / rounds,
    }
