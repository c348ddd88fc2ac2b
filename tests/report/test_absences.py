from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foul.report.absences import absences, spans
from foul.report.collect import collect
from foul.report.write import write_report
from foul.runs.folder import RunFolder

from .reported import THREE, result, write_run


def test_who_was_missing_is_told_with_rounds_and_reason(tmp_path: Path) -> None:
    records = [{"round": 1, "failures": {"east-0": "not connected"}}]
    run = write_run(tmp_path / "run", [*THREE[:1], result("foul", records=records)])
    for number in (1, 2, 3, 4, 6):
        failures = {} if number == 1 else {"north-1": "no reply within the deadline"}
        RunFolder(run).append({"round": number, "failures": failures})
    told = [
        "learning, rounds 2 to 4, 6: north-1 (no reply within the deadline)",
        "foul, domain:east, round 1: east-0 (not connected)",
    ]
    assert absences(collect([run]).runs[0]) == told
    page = write_report([run], tmp_path / "page.html").read_text()
    assert all(sentence in page for sentence in told)


def test_a_run_in_which_everybody_answered_says_so(tmp_path: Path) -> None:
    page = write_report([write_run(tmp_path / "run")], tmp_path / "page.html").read_text()
    assert "Everybody who was asked answered in every round." in page


@given(st.sets(st.integers(1, 40), min_size=1))
def test_spans_name_every_number_once(numbers: set[int]) -> None:
    named: list[int] = []
    for span in spans(numbers).split(", "):
        first, _, last = span.partition(" to ")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(numbers)
