import pytest

from foul.report.units import duration, operations, size


@pytest.mark.parametrize(
    ("count", "told"), [(999, "999 B"), (1000, "1.0 kB"), (2.5e6, "2.5 MB"), (3e15, "3000.0 TB")]
)
def test_bytes_are_in_a_unit_that_reads_well(count: float, told: str) -> None:
    assert size(count) == told


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 FLOP"), (2e9, "2.0 GFLOP"), (3.4e12, "3.4 TFLOP"), (1e16, "10.0 PFLOP")],
)
def test_operations_are_in_a_unit_that_reads_well(count: float, told: str) -> None:
    assert operations(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.04, "0.0 s"), (119, "119.0 s"), (120, "2 min"), (9000, "2.5 h")]
)
def test_durations_are_in_a_unit_that_reads_well(seconds: float, told: str) -> None:
    assert duration(seconds) == told
