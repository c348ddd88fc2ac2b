"""Runs on disk with figures that a person can check, and rows made of them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from small_runs import small_config

from foul.report.aggregate import Row, aggregate
from foul.report.collect import Entry, Run
from foul.runs.checkpoint import save_tensors
from foul.runs.folder import RunFolder
from foul.runs.results import add_results
from foul.unlearning.saved import label_of

REQUEST = "domain:east"
CLIENTS = {"north-0": "north", "north-1": "north", "east-0": "east", "east-1": "east"}


def result(method: str, fa: float = 0.5, **more: Any) -> dict[str, Any]:
    """A result with the figures that every run has; `more` replaces or adds some."""
    plain = {
        "method": method,
        "forget": REQUEST,
        "seed": 0,
        "fa": fa,
        "ra": 0.9,
        "ta": 0.8,
        "mia_auc": 0.5,
        "rounds": 4,
        "bytes": 1_000_000,
        "flops": 2_000_000_000,
        "stopped": "all rounds done",
        "curve": [{"round": 0, "fa": 0.9, "ra": 0.9}, {"round": 1, "fa": fa, "ra": 0.9}],
    }
    return plain | more


THREE = (
    result("none", 0.9, bytes=0, flops=0, rounds=0, curve=[{"round": 0, "fa": 0.9, "ra": 0.9}]),
    result("foul", 0.5, mia_accuracy=0.55),
    result("retrain", 0.6, mia_accuracy=0.5, bytes=4_000_000, flops=8_000_000_000),
)
"""The learned model, a method and Retrain."""


def evaluation(accuracy: float, auc: float = 0.6) -> dict[str, Any]:
    """What `foul evaluate` measures, with a few numbers."""
    score = {"samples": 10, "accuracy": accuracy, "loss": 1.0}
    each = {"train": score, "test": score}
    attack: dict[str, Any] = {
        "auc": auc,
        "auc_low": auc - 0.1,
        "auc_high": auc + 0.1,
        "accuracy": 0.55,
    }
    attack |= {"tpr_1": 0.02, "tpr_01": None, "members": 20, "others": 10}
    rates = [[0.0, 0.0], [0.1, 0.2], [0.5, 0.7], [1.0, 1.0]]
    return {
        "accuracy": {"clients": dict.fromkeys(CLIENTS, each), "domains": {}},
        "attacks": {
            "loss": attack | {"roc": rates},
            "modified_entropy": attack | {"auc": auc - 0.05},
        },
        "probes": {"K": {"labels": 0.9, "domain": 0.8}, "V": {"labels": 0.5, "domain": None}},
        "kl": {"forget": 0.25, "retain": 0.125, "test": 0.5},
        "kl_floor": {"forget": 0.0625, "retain": 0.03, "test": 0.04},
        "relearn": {"rounds": 2, "curve": [0.5, 0.7, 0.9], "target": 0.9},
        "backdoor": {"success": 0.375},
    }


def write_run(
    path: Path,
    results: Any = THREE,
    *,
    seed: int = 0,
    clients: Mapping[str, str] = CLIENTS,
    classes: tuple[str, ...] = ("bars", "disc"),
    evaluations: Mapping[str, dict[str, Any]] | None = None,
    **changes: object,
) -> Path:
    """A run folder with these results, and evaluations by method."""
    facts = {
        "command": "foul run small",
        "classes": list(classes),
        "clients": [
            {"id": name, "domain": domain, "samples": {"train": 30, "test": 10}}
            for name, domain in clients.items()
        ],
    }
    folder = RunFolder.create(path, small_config(seed=seed, **changes), facts)
    if results:
        add_results(folder.results_file, [{**r, "seed": seed} for r in results])
    for method, told in (evaluations or {}).items():
        folder.evaluation.mkdir(exist_ok=True)
        label = label_of(method, results[0]["forget"])
        (folder.evaluation / f"{label}.json").write_text(json.dumps(told))
    return path


def write_pictures(run: Path) -> None:
    """Two reconstructed images and a map of four samples."""
    images = torch.arange(2 * 4 * 4 * 3, dtype=torch.uint8).reshape(2, 4, 4, 3)
    tensors = dict.fromkeys(("original", "both", "k_only", "v_only"), images)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    tensors |= {name: torch.eye(4)[:, :2] for name in ("k_map", "v_map")}
    tensors |= {"class": torch.tensor([0, 1, 0, 1]), "domain": torch.tensor([0, 0, 1, 1])}
    (run / "evaluation").mkdir(exist_ok=True)
    names = {"domains": ["north", "east"], "classes": ["bars", "disc"]}
    save_tensors(run / "evaluation" / "pictures.safetensors", tensors, names)


def entries(
    *results: dict[str, Any], evaluations: Mapping[str, dict[str, Any]] | None = None
) -> list[Entry]:
    """Results as if they were read from one run."""
    facts = {"clients": [{"id": name, "domain": d} for name, d in CLIENTS.items()]}
    run = Run(Path("run"), Path("run"), facts, small_config(), {}, results)
    told = evaluations or {}
    return [Entry(run, r["method"], 0, r, told.get(r["method"], {})) for r in results]


def rows(
    *results: dict[str, Any], evaluations: Mapping[str, dict[str, Any]] | None = None
) -> list[Row]:
    return aggregate(entries(*results, evaluations=evaluations))
