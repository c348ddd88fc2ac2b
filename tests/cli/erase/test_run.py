import json
from pathlib import Path

from cli.conftest import Foul
from foul import RunFolder
from foul.erasure.store import Store

from .conftest import lenient


def test_a_missed_policy_is_exit_code_2_and_the_old_model_stays(foul: Foul, run: Path) -> None:
    foul("erase", "request", run, "--client", "north-1")
    policy = Store.open(run).path / "policy.toml"
    policy.write_text("[accept]\nmia_auc_high = 0.5\nmia_auc_low = 0.5\n")
    before = (run / "models" / "learned.safetensors").read_bytes()
    missed = foul("erase", "run", run, "rounds=1", "-m", "not", "-q")
    assert missed.code == 2
    assert "R-0001 failed: policy missed" in missed.out
    assert "version 0 as before" in missed.out
    assert (run / "models" / "learned.safetensors").read_bytes() == before
    withdrawn = foul("erase", "withdraw", run, 1, "--reason", "retraining elsewhere")
    assert "withdrawn" in withdrawn.out
    assert len(list((run / "erasure" / "receipts").glob("receipt-*.json"))) == 2


def test_info_and_export_show_the_model_in_service(foul: Foul, run: Path) -> None:
    foul("erase", "request", run, "--client", "north-1")
    lenient(run)
    assert foul("erase", "run", run, "rounds=1", "-m", "retrain", "-q", "--json").json
    told = foul("info", run, "--json").json
    assert [client["id"] for client in told["facts"]["clients"]] == ["east-0", "east-1", "north-0"]
    assert "north-1" not in json.dumps(told)
    assert RunFolder.open(run).load_model()[1]["version"] == 1
