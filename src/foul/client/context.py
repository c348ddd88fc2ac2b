"""What a task gets: one client's data, the live network, and what the server sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foul.client.features import FeatureStore
from foul.client.flops import FlopMeter
from foul.data.clients import ClientData
from foul.federation.messages import Numbers, Tensors
from foul.models import DisentangledNet


@dataclass(frozen=True)
class TaskContext:
    """One task of one client. `net` is shared by all clients: a task must load what it needs."""

    data: ClientData
    net: DisentangledNet
    device: torch.device
    meter: FlopMeter
    features: FeatureStore
    round: int
    tensors: Tensors
    settings: Mapping[str, Any]

    def load(self) -> None:
        """Copy the tensors that were sent into the live network."""
        state = self.net.state_dict()
        with torch.no_grad():
            for name, tensor in self.tensors.items():
                if name not in state or state[name].shape != tensor.shape:
                    have = tuple(state[name].shape) if name in state else "no such tensor"
                    raise ValueError(
                        f"the server sent '{name}' {tuple(tensor.shape)}, this client has {have}"
                    )
                state[name].copy_(tensor)

    def state(self, names: Mapping[str, Tensor]) -> Tensors:
        """Copies of the live network's tensors of these names, in plain memory order."""
        state = self.net.state_dict()
        return {
            name: state[name].detach().cpu().clone(memory_format=torch.contiguous_format)
            for name in names
        }


Task = Callable[[TaskContext], tuple[Tensors, Numbers]]
