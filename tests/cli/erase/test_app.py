import re
from pathlib import Path

import pytest

from cli.conftest import Foul
from foul.erasure.store import Store

from .conftest import lenient


def test_the_whole_way_of_a_request(foul: Foul, run: Path) -> None:
    asked = foul("erase", "request", run, "--client", "north-1", "--reason", "left", "--json").json
    assert (asked["id"], asked["clients"], asked["state"]) == ("R-0001", ["north-1"], "received")
    lenient(run)
    plan = foul("erase", "plan", run, "R-0001", "--json").json
    assert plan["recommended"] in ("foul", "not", "retrain")
    shown = foul("erase", "plan", run, 1)
    assert "Recommended:" in shown.out
    assert "last update" not in shown.out
    done = foul("erase", "run", run, 1, "rounds=1", "--method", "not", "--quiet")
    assert done.code == 0, done.err
    assert "R-0001 done: version 1" in done.out
    assert "receipt 1" in done.out
    listed = foul("erase", "list", run, "--json").json
    assert [(r["id"], r["state"], r["overdue"]) for r in listed] == [("R-0001", "done", False)]
    assert "No request waits" in foul("erase", "run", run, "--quiet").out
    told = foul("erase", "verify", run, 1, "--quiet", "--json").json
    assert (told["passed"], told["receipt"]) == (True, 2)
    beside = foul("erase", "verify", run, 1, "--retrain", "--quiet")
    assert re.search(r"before.*after.*retrained", beside.out)
    assert re.search(r"erasure by not.*retraining", beside.out)
    assert beside.out.endswith("The policy is met.\nReceipt 3 in erasure/receipts.\n")
    for number in (1, 2, 3):
        receipt = run / "erasure" / "receipts" / f"receipt-{number:06d}.json"
        assert foul("erase", "check", receipt).code == 0
    assert foul("erase", "audit", run, "--quiet").code == 0
    shown = foul("erase", "show", run, 1)
    assert re.search(r"verifying.*done", shown.out, re.S)
    lineage = foul("erase", "lineage", run, "north-1")
    assert "erased since" in lineage.out
    assert "unlearned" in lineage.out
    kinds = [entry["kind"] for entry in foul("erase", "log", run, "--json").json]
    assert kinds[:3] == ["adopted", "filed", "planned"]
    assert "their chain intact" in foul("erase", "log", run).out
    # It cannot slip back in, unless somebody says why.
    assert "was erased" in foul("unlearn", run, "--forget", "client:north-1").error()
    assert "needs a reason" in foul("erase", "readmit", run, "north-1").error()
    back = foul("erase", "readmit", run, "north-1", "--reason", "new contract")
    assert "foul erase relearn" in back.out
    version = foul("erase", "relearn", run, "--rounds", 1, "--quiet", "--json").json
    assert version["traces"]["north-1"] == "trained"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["request", "RUN"], "Say whom to erase. Either --client ID or --domain NAME"),
        (["request", "RUN", "-c", "a", "-d", "b"], "Say whom to erase"),
        (["request", "RUN", "-c", "nort-1"], "Did you mean 'north-1'?"),
        (["request", "RUN", "-d", "north", "-d", "east"], "forgets all 4 clients"),
        (["request", "RUN", "-c", "north-1", "--due", "soon"], "'soon' is no date"),
        (["request", "RUN", "-c", "north-1", "--due", "2001-01-01"], "is in the past"),
        (["plan", "RUN", "7"], "There is no request R-0007"),
        (["plan", "RUN", "seven"], "'seven' is no request"),
        (["run", "RUN", "7"], "There is no request R-0007"),
        (["verify", "RUN", "1", "rounds=1"], "'rounds=1' cannot be set here"),
        (["lineage", "RUN", "nort-1"], "Did you mean 'north-1'?"),
        (["readmit", "RUN", "north-1", "-r", "x"], "is not erased"),
        (["readmit", "RUN", "north-1", "-r", "x"], "(erased: nobody)"),
        (["list", "NOWHERE"], "is not a run folder"),
        (["policy", "NOWHERE"], "is not a run folder"),
    ],
)
def test_a_mistake_is_one_clear_line(
    foul: Foul, run: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    Store.open(run)
    places = {"RUN": str(run), "NOWHERE": str(tmp_path / "nowhere")}
    assert told in foul("erase", *(places.get(a, a) for a in arguments)).error()


@pytest.mark.parametrize("verb", ["plan", "verify", "withdraw", "show", "lineage", "readmit"])
def test_only_a_request_makes_a_ledger(foul: Foul, run: Path, verb: str) -> None:
    reason = ["-r", "x"] if verb == "readmit" else []
    line = foul("erase", verb, run, "1", *reason).error()
    assert "has no erasure ledger yet. It is made with the first request" in line
    assert not (run / "erasure").exists()


def test_a_damaged_ledger_is_one_line(foul: Foul, run: Path) -> None:
    foul("erase", "request", run, "--client", "north-1")
    file = run / "erasure" / "ledger.sqlite"
    file.write_bytes(file.read_bytes()[:6000])
    before = (run / "models" / "learned.safetensors").read_bytes()
    for arguments in (["list", run], ["run", run], ["request", run, "-c", "east-0"]):
        assert "is damaged" in foul("erase", *arguments).error()
    assert (run / "models" / "learned.safetensors").read_bytes() == before
