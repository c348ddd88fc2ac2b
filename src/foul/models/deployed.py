"""The network as it is served: raw pixels in, logits out."""

import torch
from torch import Tensor, nn

from foul.data.batches import MEAN, STD
from foul.models.disentangled import DEPLOYED, DisentangledNet, part_of


class DeployedNet(nn.Module):
    """E, K, V and the deployed head, with the normalisation of pixels built in."""

    scale: Tensor
    shift: Tensor

    def __init__(self, net: DisentangledNet) -> None:
        super().__init__()
        self.deployed_head = net.deployed_head
        self.E, self.K, self.V = net.E, net.K, net.V
        self.xi, self.head = net.xi, net.head
        std, mean = torch.tensor(STD), torch.tensor(MEAN)
        self.register_buffer("scale", (1 / (255 * std)).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("shift", (mean / std).view(1, 3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits for uint8 images `[B, 3, H, W]`."""
        features = self.E(images * self.scale - self.shift)
        z_k = self.K(features).flatten(1)
        if self.deployed_head == "causal":
            return self.xi(z_k)  # type: ignore[no-any-return]
        z_v = self.V(features).flatten(1)
        return self.head(torch.cat([z_k, z_v], 1))  # type: ignore[no-any-return]


def deployed_state(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the deployed parts."""
    return {name: t for name, t in tensors.items() if part_of(name) in DEPLOYED}
