"""Writing the deployed network for other programs, and applying it to images."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foul.config.schema import ModelConfig
from foul.data.decode import CorruptImage, decode
from foul.errors import UserError
from foul.models.deployed import DeployedNet, deployed_state
from foul.models.disentangled import DisentangledNet
from foul.runs.atomic import replacing, write_text
from foul.runs.checkpoint import load_tensors, save_tensors
from foul.runs.folder import RunFolder


@dataclass(frozen=True)
class Prediction:
    """The most likely class of an image."""

    image: str
    label: str
    confidence: float


@dataclass(frozen=True)
class Deployed:
    """A network ready to answer, with what it must know: class names and image size."""

    net: DeployedNet
    classes: tuple[str, ...]
    image_size: int

    def predict(self, paths: Sequence[Path]) -> list[Prediction]:
        """Classify image files; they are resized as in training.

        Raises:
            UserError: a file is not an image.
        """
        pixels = torch.stack([_pixels(path, self.image_size) for path in paths])
        with torch.inference_mode():
            confidence, label = torch.softmax(self.net(pixels), 1).max(1)
        return [
            Prediction(str(path), self.classes[int(index)], float(value))
            for path, index, value in zip(paths, label, confidence, strict=True)
        ]


def load_deployed(path: Path, model: str = "learned") -> Deployed:
    """The deployed network of a run folder, or of a folder that `export` wrote.

    Raises:
        UserError: it is neither, has no such model, or its files do not belong together.
    """
    if (path / "model.json").is_file():
        tensors, _ = load_tensors(path / "model.safetensors")
        facts = _exported_facts(path / "model.json")
        config = ModelConfig.model_validate(facts["model"])
    else:
        folder = RunFolder.open(path)
        facts, config = folder.facts(), folder.config().model
        tensors, _ = folder.load_model(model)
    net = DisentangledNet(config, len(facts["classes"]), facts["image_size"])
    deployed = DeployedNet(net)
    try:
        deployed.load_state_dict(deployed_state(tensors))
    except RuntimeError as error:
        raise UserError(
            f"The model in {path} does not fit its description "
            f"({str(error).splitlines()[-1].strip()})",
            "Export it again.",
        ) from error
    return Deployed(deployed.eval(), tuple(facts["classes"]), facts["image_size"])


def export(run: Path, out: Path, model: str = "learned") -> list[Path]:
    """Write `model.safetensors`, `model.json` and the `torch.export` program `model.pt2`.

    Raises:
        UserError: the run has no such model, or `out` cannot be a folder.
    """
    folder = RunFolder.open(run)
    tensors, _ = folder.load_model(model)
    deployed = load_deployed(run, model)
    config = folder.config().model.model_copy(update={"weights": None})
    facts = {
        "model": config.model_dump(mode="json"),
        "classes": list(deployed.classes),
        "image_size": deployed.image_size,
        "input": "uint8 [batch, 3, image_size, image_size], RGB",
        "output": "logits [batch, classes]",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{out} cannot be a folder ({error.strerror})", "Choose another --out."
        ) from error
    save_tensors(out / "model.safetensors", deployed_state(tensors), {"model": model})
    example = torch.zeros(2, 3, deployed.image_size, deployed.image_size, dtype=torch.uint8)
    program = torch.export.export(
        deployed.net, (example,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}}
    )
    # In memory first: torch insists on its own suffix for files.
    content = BytesIO()
    torch.export.save(program, content)
    with replacing(out / "model.pt2") as temporary:
        temporary.write_bytes(content.getvalue())
    write_text(out / "model.json", json.dumps(facts, indent=2) + "\n")
    return [out / name for name in ("model.safetensors", "model.pt2", "model.json")]


def _exported_facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ModelConfig.model_validate(facts["model"])
        len(facts["classes"]), int(facts["image_size"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} was not written by foul ({reason})", "Export it again.") from error
    return facts


def _pixels(path: Path, size: int) -> Tensor:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "Check the path.") from error
    try:
        image = decode(content, size)
    except CorruptImage as error:
        raise UserError(
            f"{path} is not a readable image ({error})", "Give an image file."
        ) from error
    return torch.from_numpy(image.copy()).permute(2, 0, 1)
