from pathlib import Path

from .conftest import Foul


def test_the_machine_is_described(foul: Foul) -> None:
    told = foul("doctor", "--json").json
    assert told.keys() == {"machine", "packages"}
    assert told["machine"]["device"] in ("cpu", "cuda")
    assert told["machine"]["workers"] >= 1
    assert told["machine"]["cores"] >= 1
    assert told["packages"]["torch"][0].isdigit()
    out = foul("doctor").out
    assert "threads per worker" in out
    assert "safetensors" in out


def test_a_configuration_is_estimated(foul: Foul, small: Path) -> None:
    told = foul("doctor", small, "--json").json["estimate"]
    assert told.keys() == {
        "clients",
        "training_images",
        "parameters",
        "seconds_per_round",
        "minutes",
        "megabytes_per_round",
        "checkpoint_bytes",
        "run_bytes",
        "cache_bytes",
    }
    out = foul("doctor", small).out
    assert "megabytes per round" in out
    assert f"Learning stage of '{small}'" in out


def test_overrides_alone_change_the_default(foul: Foul) -> None:
    told = foul("doctor", "clients.per_domain=7", "model.width=0.25", "--json").json["estimate"]
    assert told["clients"] == 4 * 7


def test_what_cannot_run_is_said(foul: Foul) -> None:
    assert "is not available here" in foul("doctor", "device=cuda:9").error()
    assert "is neither a file" in foul("doctor", "digts").error()
    assert "There is nothing at" in foul("doctor", "folder", "data.path=/nowhere").error()
