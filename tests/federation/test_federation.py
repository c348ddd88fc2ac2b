from factories import MakeWorker
from hypothesis import given
from hypothesis import strategies as st

from foul.config.schema import FederationConfig
from foul.federation.federation import Federation, RoundLog
from foul.federation.inprocess import InProcessEngine
from foul.federation.ledger import Cost
from foul.federation.observer import Observer

amounts = st.builds(Cost, *[st.integers(0, 10**9)] * 4)
costs = st.dictionaries(st.sampled_from(["a", "b", "c"]), amounts)


@given(costs, costs)
def test_costs_of_another_task_are_added_client_by_client(
    first: dict[str, Cost], second: dict[str, Cost]
) -> None:
    log = RoundLog(costs=dict(first))
    log.spent(second)
    assert set(log.costs) == set(first) | set(second)
    for client, cost in log.costs.items():
        one, other = first.get(client, Cost()), second.get(client, Cost())
        assert cost.bytes == one.bytes + other.bytes
        assert cost.flops == one.flops + other.flops


def test_other_randomness_for_the_same_clients_and_ledger(
    make_worker: MakeWorker,
) -> None:
    config, observer = FederationConfig(participation=0.5), Observer()
    federation = Federation(InProcessEngine(make_worker()), config, 3, observer=observer)
    other = federation.reseeded(1_000_006)
    assert (federation.seed, other.seed) == (3, 1_000_006)
    assert other.engine is federation.engine
    assert (other.config, other.observer) == (config, observer)
    other.ledger.record("retrain", Cost(5))
    assert federation.ledger.total("retrain").bytes == 5
    drawn = [[c.id for c in f.sample(f.clients, 1)] for f in (federation, other)]
    assert drawn[0] != drawn[1]
    again = federation.reseeded(1_000_006).sample(federation.clients, 1)
    assert [client.id for client in again] == drawn[1]


def test_clients_that_are_left_out_are_not_there(make_worker: MakeWorker) -> None:
    engine = InProcessEngine(make_worker())
    federation = Federation(engine, FederationConfig(), 0, without=["east-0", "nobody"])
    everyone = [client.id for client in engine.clients]
    assert [c.id for c in federation.clients] == [id for id in everyone if id != "east-0"]
    assert [c.id for c in federation.reseeded(1).clients] == [c.id for c in federation.clients]
