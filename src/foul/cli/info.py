"""`foul info`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from foul.cli.output import JSON_OPTION, percent, print_json, print_table, size
from foul.federation.build import initial_network
from foul.models import summarise
from foul.runs.folder import RunFolder


def info(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show what a run folder holds: stage, rounds, accuracy, costs, models, disk."""
    folder = RunFolder.open(run)
    facts, config, records = folder.facts(), folder.config(), folder.records()
    summary = folder.summary()
    net = initial_network(
        config.model_copy(update={"model": config.model.model_copy(update={"weights": None})}),
        len(facts["classes"]),
        facts["image_size"],
    )
    sizes = summarise(net)
    if as_json:
        print_json(
            {
                "run": str(run),
                "stage": summary.get("stage", "learning"),
                "rounds": len(records),
                "facts": facts,
                "config": config.model_dump(mode="json"),
                "model": sizes.to_dict(),
                "models": sorted(file.stem for file in folder.models.glob("*.safetensors")),
                "disk_bytes": folder.disk_bytes(),
                "summary": summary,
            }
        )
        return
    print_table(
        f"{run}: {summary.get('stage', 'still learning')} after {len(records)} rounds",
        ["", "value"],
        [
            ["data", f"{config.data.name}, {facts['image_size']} px"],
            ["clients", f"{len(facts['clients'])} in {_domains(facts)} domains"],
            ["model", f"{config.model.backbone}, {sizes.parameters:,} parameters"],
            ["objective", config.learning.objective],
            ["version", facts["version"]],
            ["disk", size(folder.disk_bytes())],
            ["command", facts.get("command", "")],
        ],
    )
    print_table(
        f"Parts of the network (V is {percent(sizes.share('V'))} % of what is deployed)",
        ["part", "parameters", "bytes", "deployed"],
        [[p.part, p.parameters, size(p.bytes), "yes" if p.deployed else "no"] for p in sizes.parts],
    )
    if summary:
        show_summary(folder)
    else:
        typer.echo(f"Continue with: foul learn --resume --out {run}")


def show_summary(folder: RunFolder) -> None:
    """Accuracy per domain and costs of the learning stage."""
    summary = folder.summary()
    accuracy = summary["accuracy"]
    rows = [
        [domain, *(percent(accuracy[split]["domains"][domain]["accuracy"]) for split in accuracy)]
        for domain in accuracy["test"]["domains"]
    ]
    rows.append(["all", *(percent(accuracy[split]["all"]["accuracy"]) for split in accuracy)])
    rows.append(
        ["all, z_K only", *(percent(accuracy[s]["all"]["causal_accuracy"]) for s in accuracy)]
    )
    print_table(
        f"{folder.path}: accuracy in % after {summary['rounds']} rounds",
        ["domain", *accuracy],
        rows,
    )
    print_table(
        "Costs",
        ["stage", "down", "up", "client GFLOP", "server GFLOP", "client seconds"],
        [
            [
                stage,
                size(cost["bytes_down"]),
                size(cost["bytes_up"]),
                f"{cost['flops_client'] / 1e9:.1f}",
                f"{cost['flops_server'] / 1e9:.2f}",
                f"{cost['seconds']:.1f}",
            ]
            for stage, cost in summary["costs"].items()
        ],
    )
    typer.echo("FLOPs are matrix products and convolutions, backward passes included.")


def _domains(facts: dict[str, Any]) -> int:
    return len({client["domain"] for client in facts["clients"]})
