"""`foul data`."""

from pathlib import Path
from typing import Annotated

import typer

from foul.cli.output import JSON_OPTION, print_json, print_table, size
from foul.cli.progress import ProgressDisplay
from foul.config import load_config
from foul.data import known, known_sets, load_dataset
from foul.data.cache import cache_root
from foul.data.check import check as check_folder

app = typer.Typer(no_args_is_help=True, help="Look at data sets, check them, decode them.")


@app.command("list")
def list_sets(as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """The data sets that foul knows: domains, classes, images, where they come from."""
    entries = known_sets()
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "domains": dict(entry.domains),
                    "classes": list(entry.classes),
                    "images": entry.images,
                    "image_size": entry.image_size,
                    "embedded": entry.embedded,
                    "source": entry.source,
                    "reference": entry.reference,
                }
                for entry in entries
            ]
        )
        return
    print_table(
        "Known data sets (any other ROOT/DOMAIN/CLASS/* folder or zip: data.name=folder)",
        ["name", "images", "classes", "domains", "where it comes from"],
        [
            [
                entry.name,
                entry.images,
                len(entry.classes),
                ", ".join(f"{domain} {count}" for domain, count in entry.domains.items()),
                entry.source,
            ]
            for entry in entries
        ],
    )


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A folder or zip of images.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Compare with this known data set.")
    ] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Compare a folder with what the data set should contain; decode every image.

    Exit code 2 if something is wrong with it.

      foul data check PACS.zip --name pacs
    """
    with ProgressDisplay() as display:
        report = check_folder(
            path, name, lambda done, total: display.on_work("checking images", done, total)
        )
    if as_json:
        print_json(report.to_dict())
    else:
        labels = list(next(iter(report.counts.values()), {}))
        shown = labels if len(labels) <= 12 else []
        print_table(
            f"{path}: {report.images} images",
            ["domain", "images", *shown],
            [
                [domain, sum(counts.values()), *(counts[label] for label in shown)]
                for domain, counts in report.counts.items()
            ],
        )
        for text in (*report.problems, *report.warnings):
            typer.echo(f"- {text}")
        for image, reason in report.unreadable.items():
            typer.echo(f"- unreadable: {image} ({reason})")
        typer.echo("Nothing is wrong with it." if report.ok else "It cannot be used as it is.")
    if not report.ok:
        raise typer.Exit(2)


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="A known data set, or `folder`.")],
    path: Annotated[Path | None, typer.Option("--path", help="Its folder or zip.")] = None,
    image_size: Annotated[
        int | None, typer.Option("--image-size", help="Pixels; default: the data set's usual.")
    ] = None,
    allow_corrupt: Annotated[
        bool, typer.Option("--allow-corrupt", help="Skip images that cannot be decoded.")
    ] = False,
    cache: Annotated[Path | None, typer.Option("--cache", help="Cache folder.")] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Decode a data set into the cache, so that runs start at once.

    foul data prepare pacs --path PACS.zip --image-size 64
    """
    usual = 64 if name == "folder" else known(name).image_size
    config = load_config(
        None,
        {
            "data.name": name,
            "data.path": path,
            "data.image_size": usual if image_size is None else image_size,
            "data.allow_corrupt": allow_corrupt,
            "data.cache": cache,
        },
    ).data
    with ProgressDisplay() as display:
        data = load_dataset(config, 0, display.decoded)
    rows = [[d.name, len(d.train), len(d.test)] for d in data.domains]
    needed = sum(len(d.train) + len(d.test) for d in data.domains) * config.image_size**2 * 3
    if as_json:
        print_json(
            {
                "name": data.name,
                "image_size": data.image_size,
                "cache": str(cache_root(cache)),
                "bytes": needed,
                "domains": {row[0]: {"train": row[1], "test": row[2]} for row in rows},
            }
        )
        return
    print_table(f"{data.name} at {data.image_size} px", ["domain", "train", "test"], rows)
    typer.echo(f"{size(needed)} of pixels, cached in {cache_root(cache)}")
