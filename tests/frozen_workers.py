"""Workers that have kept the outputs of a frozen network, and what they are asked."""

from pathlib import Path
from typing import Any

from factories import MakeNet
from forget_cases import scope_of

from foul.client.features import FeatureStore
from foul.client.worker import Worker
from foul.data import ClientData
from foul.federation.messages import Numbers, Request, Tensors, join_groups
from foul.models import DisentangledNet


def settings(**values: object) -> dict[str, Any]:
    """What the task `unlearn` must be told; keywords change it."""
    learning = {"batch_size": 8, "momentum": 0.9, "weight_decay": 0.0}
    return {
        "frozen": "key",
        "splits": ["train", "validation"],
        "loss": "cross_entropy",
        "aside": False,
        "level": 0.0,
        "session": "session",
        "stepwise": False,
        "epochs": 1.0,
        "rate_epochs": values.get("epochs", 1.0),
        "min_steps": 1,
        "rate": 0.05,
        "precision": "float32",
        "learning": learning,
        "seed": 0,
        **values,
    }


def unlearning(client: str, number: int, scope: Tensors, asked: Numbers) -> Request:
    """The task `unlearn` from this scope on."""
    return Request(client, "unlearn", number, join_groups({"scope": scope}), asked)


def split_scope(net: DisentangledNet, *parts: str) -> tuple[Tensors, Tensors]:
    """The parameters of these parts, and everything else."""
    state = {name: t.clone() for name, t in net.state_dict().items()}
    names = {name for name, _ in net.named_parameters()}
    scope = {n: t for n, t in scope_of(state, *parts).items() if n in names}
    return scope, {n: t for n, t in state.items() if n not in scope}


def frozen_worker(
    net: DisentangledNet, client: ClientData, store: Path, *parts: str, make_net: MakeNet
) -> tuple[Worker, Tensors]:
    """A worker that has kept the outputs, and whose live network has forgotten the rest."""
    scope, rest = split_scope(net, *parts)
    norm = "batch" if any("running" in name for name in rest) else "group"
    features = FeatureStore(store)
    first = Worker([client], make_net(norm=norm), features=features)
    reply = first.perform(Request(client.id, "freeze", 0, rest, settings()))
    assert (reply.error, reply.numbers) == ("", {"ready": True})
    # As after a resume: another process, with a network that was never trained.
    return Worker([client], make_net(seed=9, norm=norm), features=features), scope
