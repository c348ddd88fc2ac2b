"""How large each part of a network is."""

from dataclasses import asdict, dataclass

from foul.models.disentangled import DEPLOYED, DisentangledNet


@dataclass(frozen=True)
class PartSize:
    """Parameters of a part, and the bytes of its parameters and buffers."""

    part: str
    parameters: int
    bytes: int
    deployed: bool


@dataclass(frozen=True)
class ModelSummary:
    """Sizes of all parts; `model_bytes` counts what is deployed: E, K, V and the heads."""

    parts: tuple[PartSize, ...]

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts if part.deployed)

    @property
    def model_bytes(self) -> int:
        return sum(part.bytes for part in self.parts if part.deployed)

    def share(self, part: str) -> float:
        """The part's bytes as a fraction of the deployed model's."""
        return sum(p.bytes for p in self.parts if p.part == part) / self.model_bytes

    def to_dict(self) -> dict[str, object]:
        return {
            "parts": [asdict(part) for part in self.parts],
            "parameters": self.parameters,
            "bytes": self.model_bytes,
            "share_of_v": self.share("V"),
        }


def summarise(net: DisentangledNet) -> ModelSummary:
    """Sizes of the parts of this network."""
    sizes = []
    for name, module in net.parts().items():
        count = sum(parameter.numel() for parameter in module.parameters())
        size = sum(tensor.nbytes for tensor in module.state_dict().values())
        sizes.append(PartSize(name, count, size, name in DEPLOYED))
    return ModelSummary(tuple(sizes))
