import json

from hypothesis import given, settings
from hypothesis import strategies as st

from foul.federation.ledger import Cost, Ledger

counts = st.integers(0, 10**15)
costs = st.builds(Cost, counts, counts, counts, counts, st.floats(0, 1e6))
entries = st.lists(st.tuples(st.sampled_from(["learning", "evaluation", "foul"]), costs))


@settings(deadline=None)
@given(entries)
def test_totals_are_sums_per_stage(recorded: list[tuple[str, Cost]]) -> None:
    ledger = Ledger()
    for stage, cost in recorded:
        ledger.record(stage, cost)
    for stage in ("learning", "evaluation", "foul"):
        own = [cost for where, cost in recorded if where == stage]
        total = ledger.total(stage)
        assert total.bytes == sum(cost.bytes_down + cost.bytes_up for cost in own)
        assert total.flops == sum(cost.flops_client + cost.flops_server for cost in own)
        assert total.flops_server == sum(cost.flops_server for cost in own)


@settings(deadline=None)
@given(entries, entries)
def test_a_stored_ledger_goes_on_where_it_stopped(
    before: list[tuple[str, Cost]], after: list[tuple[str, Cost]]
) -> None:
    whole, first = Ledger(), Ledger()
    for stage, cost in before:
        whole.record(stage, cost)
        first.record(stage, cost)
    second = Ledger(json.loads(json.dumps(first.to_dict())))
    for stage, cost in after:
        whole.record(stage, cost)
        second.record(stage, cost)
    assert second.to_dict() == whole.to_dict()


def test_a_stage_without_costs_is_free() -> None:
    assert Ledger().total("learning") == Cost()
    assert Ledger().to_dict() == {}
