"""`foul export` and `foul predict`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, percent, print_json, print_table, size
from foul.exporting import export as write_export
from foul.exporting import load_deployed

MODEL_OPTION = typer.Option("--model", help="Which model of the run.")


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: RUN/export.")] = None,
    model: Annotated[str, MODEL_OPTION] = "learned",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Write the deployed network (E, K, V, head): safetensors and a torch.export program."""
    files = write_export(run, out or run / "export", model)
    rows = [[str(file), size(file.stat().st_size)] for file in files]
    if as_json:
        print_json([{"file": str(file), "bytes": file.stat().st_size} for file in files])
    else:
        print_table(f"Exported {model}", ["file", "size"], rows)


def predict(
    model_folder: Annotated[Path, typer.Argument(help="A run folder or an export folder.")],
    images: Annotated[list[Path], typer.Argument(help="Image files.")],
    model: Annotated[str, MODEL_OPTION] = "learned",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Classify image files with a learned model."""
    predictions = load_deployed(model_folder, model).predict(images)
    if as_json:
        print_json([asdict(prediction) for prediction in predictions])
    else:
        print_table(
            "Predictions",
            ["image", "label", "confidence %"],
            [[p.image, p.label, percent(p.confidence)] for p in predictions],
        )
