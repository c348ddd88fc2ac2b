"""`foul ulira`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.arguments import Quiet, names, split_config
from foul.cli.output import JSON_OPTION, percent, print_json, print_table
from foul.cli.progress import ProgressDisplay
from foul.config import load_config
from foul.experiments.shadows import ShadowStudy, run_shadows


def ulira(
    config: Annotated[
        str | None,
        typer.Argument(help="A TOML file or a shipped configuration; default: shadows."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change.")
    ] = None,
    forget: Annotated[str, typer.Option("--forget", "-f", help="domain:NAME.")] = "domain:textured",
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Methods to attack, with commas.")
    ] = "none,foul",
    shadows: Annotated[int, typer.Option("--shadows", help="Pairs of models.")] = 16,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to.")] = Path("runs/ulira"),
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Attack with shadow models: LiRA and U-LiRA, the strongest attacks known on unlearning.

    Each shadow draws anew which samples its clients train on, learns, forgets the domain by each
    method and is retrained without it. LiRA asks whether a sample was trained on; U-LiRA, whether a
    model unlearned it or never saw it. AUC 0.5 is chance. `none` (the learned model) shows that the
    attack works, `retrain` that it sees nothing where there is nothing.

    Stopped, the same command goes on; another method later reuses all shadows.

    Examples:

      foul ulira --shadows 16 --out runs/ulira

      foul ulira --methods foul-paper --out runs/ulira
    """
    config, texts = split_config(config, overrides)
    study = ShadowStudy(
        load_config(config or "shadows", texts), forget, names(methods) or (), shadows
    )
    with ProgressDisplay(quiet) as display:
        rows = run_shadows(study, out, display)
    if as_json:
        print_json(rows)
        return
    print_table(
        f"{out}: {shadows} shadow pairs, forgetting {forget}",
        ["method", "attack", "AUC (95 %)", "balanced accuracy %", "TPR at 1 % FPR"],
        [
            [
                row["method"],
                row["attack"],
                f"{row['auc']:.3f} ({row['auc_low']:.3f} to {row['auc_high']:.3f})",
                percent(row["accuracy"]),
                percent(row["tpr_1"]),
            ]
            for row in rows
        ],
    )
