"""`foul doctor`."""

import importlib.metadata
import os
import platform
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

import foul
from foul.cli.arguments import split_config
from foul.cli.output import JSON_OPTION, print_json, print_table, size
from foul.config import load_config
from foul.data.cache import cache_root
from foul.devices import pick_device, plan_cpu
from foul.estimate import estimate

PACKAGES = ("torch", "numpy", "scipy", "clarabel", "safetensors", "mlxtend", "tensorboard", "flwr")


def doctor(
    config: Annotated[
        str | None, typer.Argument(help="Also estimate what this configuration takes.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Say what is installed, where work will run, and what a configuration will take.

    The time is measured on a few real training steps.

      foul doctor pacs data.path=PACS.zip
    """
    config, texts = split_config(config, overrides)
    if texts and config is None:
        config = "digits"
    facts = machine(config, texts)
    if as_json:
        print_json(facts)
        return
    print_table("This machine", ["", "value"], [[k, v] for k, v in facts["machine"].items()])
    print_table("Packages", ["package", "version"], [[k, v] for k, v in facts["packages"].items()])
    if "estimate" in facts:
        told = facts["estimate"]
        for key in ("checkpoint_bytes", "run_bytes", "cache_bytes"):
            told[key] = size(told[key])
        rows = [
            [k.replace("_", " "), f"{v:.2f}" if isinstance(v, float) else v]
            for k, v in told.items()
        ]
        print_table(f"Learning stage of '{config}'", ["", "value"], rows)


def machine(config: str | None, overrides: list[str]) -> dict[str, Any]:
    """Everything the command prints."""
    chosen = load_config(config, overrides) if config else load_config()
    device = pick_device(chosen.device)
    plan = plan_cpu(chosen.workers, chosen.threads, device)
    cache = cache_root(chosen.data.cache)
    existing = next(p for p in (cache, *cache.parents) if p.exists())
    facts: dict[str, Any] = {
        "machine": {
            "foul": foul.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "device": str(device),
            "workers": plan.workers,
            "threads per worker": plan.threads,
            "cores": len(os.sched_getaffinity(0)),
            "memory": size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            "cache": str(cache),
            "free disk (cache)": size(shutil.disk_usage(existing).free),
            "free disk (here)": size(shutil.disk_usage(Path.cwd()).free),
        },
        "packages": {name: _installed(name) for name in PACKAGES},
    }
    if config:
        facts["estimate"] = estimate(chosen).to_dict()
    return facts


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
