"""`foul erase`: requests to erase somebody, from the first to the last step."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from foul.cli import erase_check, erase_serve
from foul.cli.arguments import Quiet
from foul.cli.output import JSON_OPTION, decimal, percent, print_json, print_table, size
from foul.cli.progress import ProgressDisplay
from foul.cli.remote import handed_over, on_machine, shown
from foul.config.schema import Config
from foul.erasure.audit import audit as audit_store
from foul.erasure.clock import today
from foul.erasure.evidence import Figures
from foul.erasure.lineage import lineage as lineage_of
from foul.erasure.participation import told as rounds_told
from foul.erasure.plan import plan_request
from foul.erasure.policy import Policy, load_policy, policy_text
from foul.erasure.readmission import readmit as readmit_client
from foul.erasure.relearning import relearn as go_on_learning
from foul.erasure.requests import file_request, find_request, parse_number
from foul.erasure.requests import withdraw as withdraw_request
from foul.erasure.run import issue_missing
from foul.erasure.run import run as serve_requests
from foul.erasure.state import Job, Request, State
from foul.erasure.store import Store
from foul.erasure.verify import verify as verify_request
from foul.errors import UserError
from foul.learning.going_on import RATE

app = typer.Typer(
    no_args_is_help=True,
    help="""Erase clients from a federation that runs for months: ask, plan, run, verify, prove.

RUN is a run folder that has learned. Its ledger is made with the first request, in RUN/erasure.

[bold]A request, step by step[/bold]

  foul erase request RUN --client plain-2 --reason "contract ended"

  foul erase plan RUN 1        what it will cost, what goes; changes nothing

  foul erase run RUN           serves all that waits; killed, it goes on

  foul erase verify RUN 1      the evidence once more

  foul erase list RUN          states and due dates

The model in service is RUN/models/learned.safetensors. It is replaced only if the evidence meets
the policy (`foul erase policy`); otherwise the request fails and the old model stays.""",
)

app.command("check")(erase_check.check)
app.command("serve")(erase_serve.serve)
app.command("rotate-key")(erase_check.rotate_key)

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that has learned.")]
Number = Annotated[str, typer.Argument(metavar="REQUEST", help="Its number, like 3 or R-0003.")]

Machine = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Where it runs: device, engine, flower.KEY."),
]


@app.command()
def request(
    run: Run,
    client: Annotated[
        list[str] | None, typer.Option("--client", "-c", help="A client's id; repeat for several.")
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option("--domain", "-d", help="All clients of this domain.")
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", "-r", help="Why. It stays in the ledger: name nobody.")
    ] = "",
    due: Annotated[
        str | None, typer.Option("--due", help="YYYY-MM-DD; default: in a month.")
    ] = None,
    departed: Annotated[
        bool,
        typer.Option("--departed", help="They are out of reach: nothing can be asked of them."),
    ] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """File a request to erase clients, or all clients of a domain.

    It can be filed at any time, also while another request is being served.

    Examples:

      foul erase request RUN --client plain-2

      foul erase request RUN --domain textured --reason "hospital left" --due 2027-01-31
    """
    if bool(client) == bool(domain):
        raise UserError("Say whom to erase", "Either --client ID or --domain NAME.")
    text = f"client:{','.join(client)}" if client else f"domain:{','.join(domain or [])}"
    filed = file_request(Store.open(run), text, reason, _day(due), departed)
    if as_json:
        print_json(filed.to_dict())
        return
    typer.echo(f"{filed.id}: erase {', '.join(filed.clients)}, due {filed.due}")
    typer.echo(f"Next: foul erase plan {run} {filed.number}")


@app.command("list")
def list_requests(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    pending: Annotated[bool, typer.Option("--pending", help="Only those still to serve.")] = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Requests with their states and due dates; overdue ones in red."""
    found = [
        (run, asked)
        for run in runs
        for asked in Store.read(run).state().requests.values()
        if asked.open or not pending
    ]
    if as_json:
        print_json(
            [
                {"run": str(run), **asked.to_dict(), "overdue": asked.overdue(today())}
                for run, asked in found
            ]
        )
        return
    rows = [_row(run if len(runs) > 1 else None, asked) for run, asked in found]
    columns = ["request", "whom", "state", "received", "due", "note"]
    title = "1 request" if len(rows) == 1 else f"{len(rows)} requests"
    print_table(title, [*(["run"] if len(runs) > 1 else []), *columns], rows)


def _row(run: Path | None, asked: Request) -> list[Any]:
    days = (date.fromisoformat(asked.due) - today()).days
    due = asked.due
    if asked.open:
        due += f" ({days} days left)" if days >= 0 else f" ({-days} days overdue)"
    style = "bold red" if asked.overdue(today()) else ""
    cells = [asked.text, asked.state, asked.received[:10], Text(due, style=style), asked.note]
    return [*([run] if run else []), asked.id, *cells]


@app.command()
def show(run: Run, number: Number, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Everything about one request: its states, its job, its evidence, what was purged."""
    state = Store.read(run).state()
    asked = find_request(state, parse_number(number))
    job = state.jobs.get(asked.job or 0)
    if as_json:
        print_json({**asked.to_dict(), "job": job.to_dict() if job else None})
        return
    print_table(
        f"{asked.id}: erase {', '.join(asked.clients)}",
        ["state", "since", "note"],
        [list(step) for step in asked.history],
    )
    typer.echo(f"Asked: {asked.text}. Due {asked.due}. Reason: {asked.reason or 'none given'}.")
    if job:
        show_job(state, job, asked)


@app.command()
def plan(run: Run, number: Number, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Which methods can serve a request, what each would take, what will be purged and shown.

    Nothing is changed but the request's state. Estimates come from what learning took in this run;
    `within` is the factor that bytes and FLOPs are expected to keep.
    """
    made = plan_request(Store.open(run), parse_number(number))
    if as_json:
        print_json(made)
        return
    rows = [_offer_row(offer) for offer in made["methods"]]
    columns = ["method", "exact", "rounds", "traffic", "GFLOP", "minutes", "disk", "within", ""]
    print_table(f"{made['request']}: erase {', '.join(made['clients'])}", columns, rows)
    typer.echo(f"Recommended: {made['recommended']}: {made['reason']}.")
    kinds: dict[tuple[str, str], list[int]] = {}
    for item in made["purge"]:
        kinds.setdefault((item["what"], item["how"]), []).append(item["bytes"])
    print_table(
        "What becomes of what is stored",
        ["what", "how", "files", "bytes"],
        [[what, how, len(all_), size(sum(all_))] for (what, how), all_ in kinds.items()],
    )
    typer.echo("Evidence: " + "; ".join(made["evidence"]) + ".")
    if made["together"]["requests"]:
        others = ", ".join(made["together"]["requests"])
        cheaper = "is cheaper" if made["together"]["cheaper"] else "is not cheaper"
        typer.echo(f"Also waiting: {others}; serving them together {cheaper}.")
    typer.echo(f"Next: foul erase run {run} {number}")


def _offer_row(offer: dict[str, Any]) -> list[Any]:
    exact = "yes" if offer["exact"] else "no"
    if not offer["usable"]:
        return [offer["method"], exact, *["-"] * 6, offer["why_not"]]
    return [
        offer["method"],
        exact,
        offer["rounds"],
        size(offer["bytes"]),
        f"{offer['flops'] / 1e9:.1f}",
        f"{offer['minutes']:.1f}",
        size(offer["disk"]),
        offer["within"],
        " ".join(offer["options"]),
    ]


@app.command("run")
def run_requests(
    run: Run,
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REQUEST|KEY=VALUE]...",
            help="Requests to serve together (default: all that wait), options of the method, and"
            " device, engine or flower.KEY.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="Default: what the plan recommends.")
    ] = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Serve requests: unlearn, judge the evidence, replace the model, purge, give receipts.

    Killed at any moment, the same command goes on. Without REQUEST all that waits is served,
    together where that is cheaper. If the evidence misses the policy, the request fails (exit code
    2) and the old model stays in service; run it again with another method.

    Examples:

      foul erase run RUN

      foul erase run RUN 3 --method retrain

      foul erase run RUN 4 5 rounds=10
    """
    texts = [text for text in wanted or [] if "=" in text]
    numbers = [parse_number(text) for text in wanted or [] if "=" not in text]
    store = Store.open(run)
    config, options = on_machine(store.folder, texts)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        jobs = serve_requests(store, numbers, method, options, display, config)
    state = store.state()
    if as_json:
        print_json([job.to_dict() for job in jobs])
    elif not jobs:
        typer.echo("No request waits to be served.")
    for job in jobs:
        for number in job.requests if not as_json else ():
            show_job(state, job, state.requests[number])
    if any(job.phase == "failed" for job in jobs):
        raise typer.Exit(2)


def show_job(state: State, job: Job, asked: Request) -> None:
    """What was done for a request, and what was measured."""
    base = state.versions[job.base]
    told = job.evidence.get(str(asked.number))
    if told:
        show_figures(f"{asked.id} by {job.method}", told["before"], told["after"], told["checks"])
    if told and told.get("before_passed") and not job.exact:
        typer.echo("The model before met these limits, too: they show no forgetting by themselves.")
    if job.phase == "failed":
        typer.echo(f"{asked.id} failed: {job.note}. In service: version {base.number} as before.")
    elif job.phase == "done" and job.version is not None:
        made = state.versions[job.version]
        count = sum(item["how"] in ("delete", "replace") for item in job.purge["items"])
        typer.echo(
            f"{asked.id} done: version {made.number} ({made.hash[:12]}) is in service instead of "
            f"{base.number} ({base.hash[:12]}); {count} files removed, nothing of them found; "
            f"receipt {', '.join(map(str, asked.receipts))} in erasure/receipts."
        )
    else:
        typer.echo(f"{asked.id}: job {job.number} is {job.phase}; `foul erase run` goes on.")


_SHOWN = {
    "fa": "accuracy on forgotten training data %",
    "forget_test": "accuracy on forgotten test data %",
    "ra": "accuracy on retained training data %",
    "retain_test": "accuracy on retained test data %",
    "mia_auc": "AUC of the loss attack (0.5 is chance)",
    "mia_low": "  lower end of its 95 % interval",
    "mia_high": "  upper end",
}


def show_figures(
    title: str,
    before: Figures,
    after: Figures,
    checks: list[dict[str, Any]],
    retrain: Figures | None = None,
) -> None:
    """Figures before and after, and the policy's thresholds."""

    def cells(key: str) -> list[str]:
        told = decimal if key.startswith("mia") else percent
        others = [] if retrain is None else [told(retrain[key])]
        return [told(before[key]), told(after[key]), *others]

    columns = ["", "before", "after", *([] if retrain is None else ["retrained"])]
    print_table(title, columns, [[name, *cells(key)] for key, name in _SHOWN.items()])
    print_table(
        "Policy",
        ["check", "value", "limit", "passed"],
        [
            [
                check["what"],
                decimal(check["value"]),
                f"at most {check['at_most']}"
                if check["at_most"] is not None
                else f"at least {check['at_least']}",
                "yes" if check["passed"] else Text("no", style="bold red"),
            ]
            for check in checks
        ],
    )


@app.command()
def verify(
    run: Run,
    number: Number,
    machine: Machine = None,
    with_retrain: Annotated[
        bool,
        typer.Option("--with-retrain", help="Also retrain without them, to compare (slow)."),
    ] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Measure the model in service once more and say whether it meets the policy.

    Exit code 2 if it does not.
    """
    store = Store.open(run)
    config = _machine(store, machine)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        told = verify_request(store, parse_number(number), with_retrain, display, config)
    if as_json:
        print_json(told)
    else:
        title = f"R-{told['request']:04d} in version {told['version']}"
        show_figures(title, told["before"], told["after"], told["checks"], told.get("retrain"))
        if not told["known"]:
            typer.echo("The model in service is not the one that the ledger knows.")
        typer.echo("The policy is met." if told["passed"] else "The policy is not met.")
    if not told["passed"]:
        raise typer.Exit(2)


@app.command()
def withdraw(
    run: Run,
    number: Number,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why.")] = "",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Take a request back that nobody has begun to serve, or that has failed."""
    store = Store.open(run)
    asked = withdraw_request(store, parse_number(number), reason)
    issue_missing(store, store.state())
    _told(asked.to_dict(), f"{asked.id} is withdrawn.", as_json)


@app.command()
def readmit(
    run: Run,
    client: Annotated[str, typer.Argument(help="An erased client.")],
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why it may take part again.")] = "",
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Let an erased client take part again. It is an entry of its own, with a receipt.

    The model does not know it again until it learns: foul erase relearn RUN
    """
    back = readmit_client(Store.open(run), client, reason)
    text = f"{back.id} may take part again. Learn with it: foul erase relearn {run}"
    _told({"client": back.id, "status": back.status, "since": back.since}, text, as_json)


@app.command()
def relearn(
    run: Run,
    machine: Machine = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds.")] = 5,
    rate: Annotated[
        float, typer.Option("--rate", help="Local rates as a share of the learning stage's.")
    ] = RATE,
    quiet: Quiet = False,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Go on learning from the model in service, with everybody who may take part.

    Erased clients take no part; readmitted ones do. Killed, the same command goes on.
    """
    store = Store.open(run)
    config = _machine(store, machine)
    if handed_over(config, run, quiet):
        return
    with shown(quiet) as display:
        version = go_on_learning(store, rounds, rate, display, config)
    text = f"Version {version.number} ({version.hash[:12]}) is in service."
    _told(version.to_dict(), text, as_json)


@app.command()
def lineage(
    run: Run,
    client: Annotated[str, typer.Argument(help="A client's id.")],
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Which model versions a client ever touched, and what is stored about it now."""
    found = lineage_of(Store.read(run), client)
    if as_json:
        print_json(found)
        return
    rounds = rounds_told(found["rounds"])
    typer.echo(
        f"{found['client']} ({found['domain']}): {found['status']} since {found['since']}; "
        f"took part in rounds {rounds} of learning."
    )
    print_table(
        "Model versions",
        ["version", "hash", "made", "by", "it", "in service"],
        [
            [
                version["number"],
                version["hash"][:12],
                version["made"],
                f"{version['origin']} {version['method']}".strip(),
                version["how"] or "never touched it",
                "yes" if version["in_service"] else "no",
            ]
            for version in found["versions"]
        ],
    )
    stored = ", ".join(item["path"] for item in found["stored"]) or "nothing"
    typer.echo(f"Stored about it alone: {stored}.")
    for asked in found["requests"]:
        typer.echo(f"{asked['id']}: {asked['state']}")


@app.command()
def policy(
    run: Annotated[Path | None, typer.Argument(help="A run folder; none: the default.")] = None,
    as_json: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the policy as TOML, every key explained: RUN/erasure/policy.toml, or the default.

    foul erase policy > RUN/erasure/policy.toml
    """
    found = Policy() if run is None else load_policy(Store.read(run).path)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        typer.echo(policy_text(found), nl=False)


@app.command()
def log(run: Run, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """The entries of the ledger, one line each."""
    entries = Store.read(run).entries()
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return
    print_table(
        f"{len(entries)} entries, their chain intact",
        ["entry", "time", "what", "about", "hash"],
        [
            [entry.number, entry.time, entry.kind, _about(entry.body), entry.hash[:12]]
            for entry in entries
        ],
    )


def _about(body: dict[str, Any]) -> str:
    keys = ("request", "requests", "job", "version", "client", "receipt", "note")
    return ", ".join(f"{key} {body[key]}" for key in keys if body.get(key) not in (None, ""))


@app.command()
def audit(run: Run, quiet: Quiet = False, as_json: Annotated[bool, JSON_OPTION] = False) -> None:
    """Check the ledger, the model in service, tombstones, receipts, and that nothing was left.

    Exit code 2 if anything is wrong.
    """
    with ProgressDisplay(quiet) as display:
        found = audit_store(Store.read(run), display)
    if as_json:
        print_json([finding.to_dict() for finding in found])
    else:
        rows: list[list[Any]] = [
            [f.what, "ok" if f.ok else Text("wrong", style="bold red"), f.told] for f in found
        ]
        print_table(f"{run}: audit", ["", "", "found"], rows)
    if not all(finding.ok for finding in found):
        raise typer.Exit(2)


def _machine(store: Store, texts: list[str] | None) -> Config:
    """The run's configuration with other settings of the machine.

    Raises:
        UserError: another setting is named.
    """
    config, others = on_machine(store.folder, texts or [])
    if others:
        raise UserError(
            f"'{others[0]}' cannot be set here", "Only device, workers, threads, engine, flower."
        )
    return config


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError(f"'{text}' is no date", "Write it as YYYY-MM-DD.") from None


def _told(value: dict[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        typer.echo(text)
