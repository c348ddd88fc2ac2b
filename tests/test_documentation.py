"""The pages keep their word: links lead somewhere, commands exist, and figures are those that are
stored for the defaults of today. A default that is changed without measuring again fails here."""

import json
import re
import runpy
import shlex
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import click
import pytest
from typer.main import get_command

from foul.cli.app import program
from foul.config import load_config
from foul.evaluation.gaps import distance
from foul.experiments.store import key_of_request, result_key
from foul.unlearning.methods import make_method

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
RESULTS = ROOT / "benchmarks" / "results"


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(there), f"{there.name} has no heading for #{anchor}"


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every `foul ...` line of a code block, without its comment."""
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        # A drawing may name commands too, with a comma behind them.
        if re.match(r"    foul [\w-]+( |$)", line):
            yield shlex.split(line, comments=True)[1:]


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these words call, and the words behind its name."""
    command: click.Command = get_command(program(()))
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_commands_and_their_options_exist(page: Path) -> None:
    for words in commands(page):
        command, rest = resolved(words)
        assert not isinstance(command, click.Group) or command.invoke_without_command, words
        known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
        unknown = {w.partition("=")[0] for w in rest if w.startswith("-")} - known - {"--help"}
        assert not unknown, f"foul {' '.join(words)}: no option {unknown}"


def rows(page: str, heading: str) -> list[dict[str, str]]:
    """The first table behind a text of a page, by the names of its columns."""
    text = (ROOT / page).read_text(encoding="utf-8").split(heading, 1)[1]
    lines = dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in takewhile(lambda line: line.startswith("|"), lines)
    ]
    return [dict(zip(table[0], cells, strict=True)) for cells in table[2:]]


def stored(file: str) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    return known


def with_spread(values: list[float], digits: int) -> str:
    middle, spread = f"{mean(values):.{digits}f}", stdev(values)
    return f"{middle} ± {spread:.{digits}f}" if spread else middle


def test_the_comparison_is_what_is_stored_for_todays_defaults() -> None:
    known, table = stored("compare-digits.json"), rows("README.md", "## Compare")
    assert len(table) == 16
    results = {
        (row["method"], seed): known[
            key_of_request(
                load_config("digits", {"seed": seed}),
                "domain:textured",
                "none" if row["method"] == "learned" else row["method"],
            )
        ]
        for row in table
        for seed in range(3)
    }
    for row in table:
        of = [results[row["method"], seed] for seed in range(3)]
        for column, key in (("FA %", "fa"), ("RA %", "ra"), ("TA %", "ta")):
            assert row[column] == with_spread([100 * r[key] for r in of], 1), (row, column)
        assert row["MIA"] == with_spread([r["mia_auc"] for r in of], 3), row
        assert float(row["MB"]) == pytest.approx(mean(r["bytes"] for r in of) / 1e6, abs=0.051)
        assert float(row["GFLOP"]) == pytest.approx(mean(r["flops"] for r in of) / 1e9, abs=0.51)
        off = [distance(r, results["retrain", seed]) for seed, r in enumerate(of)]
        assert row["off by"] == with_spread(off, 1), row


def test_the_demo_is_what_is_stored_for_todays_defaults() -> None:
    known, config = stored("unlearning-digits.json"), load_config("digits")
    request = "domain:inverted"
    retrain = known[key_of_request(config, request, "retrain")]
    for row in rows("README.md", "## Forget"):
        method = "none" if row["method"] == "learned" else row["method"]
        result = known[key_of_request(config, request, method)]
        assert row["FA %"] == f"{100 * result['fa']:.1f}"
        assert row["RA %"] == f"{100 * result['ra']:.1f}"
        assert row["TA %"] == f"{100 * result['ta']:.1f}"
        assert row["MIA"] == f"{result['mia_auc']:.3f}"
        assert row["off by"] == f"{distance(result, retrain):.1f}"


def test_every_domain_and_seed_is_what_is_stored_for_todays_defaults() -> None:
    known, table = stored("unlearning-digits.json"), rows("README.md", "FA of FOUL / Retrain for")
    assert [row["seed"][0] for row in table] == ["0", "1", "2"]
    for seed, row in enumerate(table):
        config, lost = load_config("digits", {"seed": seed}), []
        for domain in ("plain", "inverted", "contours", "textured"):
            foul, retrain = (
                100 * known[key_of_request(config, f"domain:{domain}", method)]["fa"]
                for method in ("foul", "retrain")
            )
            assert row[domain] == f"{foul:.1f} / {retrain:.1f}"
            lost.append(abs(foul - retrain))
        assert row["mean of the gaps"] == f"{mean(lost):.1f}"


@pytest.mark.parametrize(
    ("heading", "data", "settings"),
    [
        ("**`digits`** (12 rounds", "digits", {}),
        ("**`digits`** until patience", "digits", {"learning.rounds": 40}),
        ("**Digits28** after 20 rounds", "digits28", {"learning.rounds": 20}),
        ("one per domain (`foul run digits28", "digits28", {"learning.rounds": 20}),
        ("Learned until patience stops it", "digits28", {}),
        ("single clients of the model of 36 rounds", "digits28", {}),
        ("**PACS64**", "pacs", {}),
        ("**PACS** until patience", "pacs", {"learning.rounds": 60}),
        ("clients of the model of 43 rounds", "pacs", {"learning.rounds": 60}),
    ],
)
def test_forgetting_is_what_is_stored_for_todays_defaults(
    heading: str, data: str, settings: dict[str, Any]
) -> None:
    known, table = stored(f"unlearning-{data}.json"), rows("docs/results.md", heading)
    assert table
    for row in table:
        words, _, seed = row["forgotten"].partition(" (seed ")
        request = words.replace(" ", ":", 1)
        chosen = load_config(data, settings | {"seed": int(seed.rstrip(")") or 0)})
        foul, retrain = (
            known[key_of_request(chosen, request, name)] for name in ("foul", "retrain")
        )
        for column, key in (("FA", "fa"), ("RA", "ra"), ("TA", "ta")):
            expected = f"{100 * foul[key]:.1f} / {100 * retrain[key]:.1f}"
            assert row[column] == expected, (row["forgotten"], column)
        assert row["MIA"].startswith(f"{foul['mia_auc']:.3f} / {retrain['mia_auc']:.3f}")
        assert row["rounds"] == str(foul["rounds"])
        assert row["bytes"] == f"{100 * foul['bytes'] / retrain['bytes']:.1f}"
        assert row["FLOPs"] == f"{100 * foul['flops'] / retrain['flops']:.1f}"


SEARCHED = {
    "`digits`": ("digits", {}, "inverted"),
    "Digits28": ("digits28", {"learning.rounds": 20}, "mnistm"),
    "PACS64": ("pacs", {}, "cartoon"),
}
"""By column: the data, its settings, and the domain that was forgotten."""


def test_the_search_for_defaults_is_what_is_stored_and_bold_are_todays() -> None:
    table = rows("docs/methods.md", "Bold: the default.")
    assert len(table) == 30
    for row in table:
        method, texts = row["method"].strip("*"), row["options"].split()
        default = make_method(method).options == make_method(method, texts).options
        assert default == row["method"].startswith("**"), row
        for column, (data, settings, domain) in SEARCHED.items():
            key = key_of_request(load_config(data, settings), f"domain:{domain}", method, texts)
            found = stored(f"method-search-{data}.json")[key]
            if row[column] == "diverges":
                assert "forget" not in found
            else:
                shown = f"{found['forget']:.1f} / {found['retain']:.1f}: "
                assert row[column].startswith(shown), (row, column)


@pytest.mark.parametrize(
    ("heading", "method"),
    [("### Aims", "foul"), ("--method retrain-again`", "retrain-again")],
)
def test_the_aims_are_what_their_command_prints(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    heading: str,
    method: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["aims.py", "--json", "--method", method])
    runpy.run_path(str(ROOT / "benchmarks" / "aims.py"), run_name="__main__")
    sets = json.loads(capsys.readouterr().out)
    table = rows("docs/results.md", heading)
    assert [{aim: cell.strip("*") for aim, cell in row.items()} for row in table] == [
        {"requests for": name, **aims} for name, aims in sets.items()
    ]


def test_the_ablation_is_what_is_stored() -> None:
    """And its first row, of which the others are changes, is FOUL as it is."""
    table = rows("docs/results.md", "### What each choice contributes")
    variants = runpy.run_path(str(ROOT / "benchmarks" / "ablation.py"))["VARIANTS"]
    assert [row["variant"] for row in table] == list(variants)
    known, retrained = stored("ablation-digits.json"), stored("unlearning-digits.json")
    config = load_config("digits")
    for row in table:
        (method, texts), of = variants[row["variant"]], []
        for domain in ("plain", "inverted", "contours", "textured"):
            request = f"domain:{domain}"
            retrain = retrained[key_of_request(config, request, "retrain")]
            chosen = [text.replace("RETRAIN", str(retrain["fa"])) for text in texts]
            of.append((known[key_of_request(config, request, method, chosen)], retrain))
        for column, lost in (
            ("abs. FA gap", [100 * abs(r["fa"] - retrain["fa"]) for r, retrain in of]),
            ("RA gap", [100 * (r["ra"] - retrain["ra"]) for r, retrain in of]),
            ("TA gap", [100 * (r["ta"] - retrain["ta"]) for r, retrain in of]),
            ("rounds", [float(r["rounds"]) for r, _ in of]),
        ):
            assert float(row[column]) == pytest.approx(mean(lost), abs=0.051), (row, column)
        for column in ("bytes", "FLOPs"):
            share = mean(r[column.lower()] / retrain[column.lower()] for r, retrain in of)
            assert float(row[column]) == pytest.approx(share, abs=0.0051), (row, column)


SWEPT = {"kappa", "unfit_kappa", "server_rate", "matching"}
"""What the paper's figures vary, and its rows without matching."""


@pytest.mark.parametrize("file", sorted((ROOT / "docs/results").glob("*.json")), ids=by_name)
def test_pages_of_the_papers_tables_and_figures_have_todays_foul(file: Path) -> None:
    """Or they say with which other option they were measured."""
    today = make_method("foul").options.model_dump(mode="json")
    page = file.with_suffix(".md").read_text(encoding="utf-8")
    for trial in json.loads(file.read_text(encoding="utf-8"))["trials"]:
        for result in trial["results"].values():
            if result["method"] == "foul":
                others = {key for key in today if result["options"].get(key) != today[key]} - SWEPT
                told = {key for key in others if f"`{key}={result['options'][key]}`" in page}
                assert others == told, f"{result['label']} was measured with another {others}"


@pytest.mark.parametrize("file", sorted((ROOT / "docs/results").glob("*.json")), ids=by_name)
def test_results_of_pages_have_the_keys_of_what_made_them(file: Path) -> None:
    for trial in json.loads(file.read_text(encoding="utf-8"))["trials"]:
        settings: dict[str, Any] = {"seed": trial["seed"]}
        if "k" in trial["at"]:
            causal = int(trial["at"]["k"])
            split = {"model.k_channels": causal, "model.v_channels": 32 - causal}
            settings |= {"learning.rounds": 15, **split}
        elif trial["data"] == "digits28":
            settings |= {"learning.rounds": 20}
        config = load_config(trial["data"], settings)
        for key, result in trial["results"].items():
            if result["method"] == "foul":
                assert key == result_key(config, result["forget"], "foul", result["options"])
