"""`foul erase`: requests to erase somebody, from the first to the last step."""

import typer

from foul.cli.erase.audit import audit
from foul.cli.erase.check import check
from foul.cli.erase.lineage import lineage
from foul.cli.erase.list import list_requests
from foul.cli.erase.log import log
from foul.cli.erase.plan import plan
from foul.cli.erase.policy import policy
from foul.cli.erase.readmit import readmit
from foul.cli.erase.relearn import relearn
from foul.cli.erase.request import request
from foul.cli.erase.rotate_key import rotate_key
from foul.cli.erase.run import run_requests
from foul.cli.erase.serve import serve
from foul.cli.erase.show import show
from foul.cli.erase.verify import verify
from foul.cli.erase.withdraw import withdraw

app = typer.Typer(
    no_args_is_help=True,
    help="""Erase clients from a federation that runs for months: ask, plan, run, verify, prove.

RUN is a run folder that has learned. Its ledger is made with the first request, in RUN/erasure.

[bold]A request, step by step[/bold]

  foul erase request RUN --client plain-2 --reason "contract ended"

  foul erase plan RUN 1        what it will cost, what goes; changes nothing

  foul erase run RUN           serves all that waits; killed, it goes on

  foul erase verify RUN 1      the evidence once more; --retrain: beside a retrained model

  foul erase list RUN          states and due dates

The model in service is RUN/models/learned.safetensors. It is replaced only if the evidence meets
the policy (`foul erase policy`); otherwise the request fails and the old model stays.""",
)

app.command("request")(request)
app.command("list")(list_requests)
app.command("show")(show)
app.command("plan")(plan)
app.command("run")(run_requests)
app.command("verify")(verify)
app.command("withdraw")(withdraw)
app.command("readmit")(readmit)
app.command("relearn")(relearn)
app.command("lineage")(lineage)
app.command("policy")(policy)
app.command("log")(log)
app.command("audit")(audit)
app.command("check")(check)
app.command("rotate-key")(rotate_key)
app.command("serve")(serve)
