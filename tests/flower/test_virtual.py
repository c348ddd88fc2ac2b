import json

import pytest
from factories import same_bits
from small_runs import small_config

from flower.fake_grid import encoded
from foul import Config
from foul.federation.build import build
from foul.federation.codec import decode_tensors, encode_request, encode_tensors
from foul.federation.messages import Request
from foul.flower.checks import read_facts, read_reply
from foul.flower.parcel import WHO, Parcel
from foul.flower.virtual import Site, make_site


@pytest.fixture
def config() -> Config:
    return small_config(engine="flower-sim")


@pytest.fixture
def site(config: Config) -> Site:
    return make_site(config, None)


def asked(site: Site, number: int, request: Request) -> Parcel:
    return site.answer(number, Parcel(encode_request(request), encode_tensors(request.tensors)))


def test_a_node_says_which_client_it_is(site: Site) -> None:
    for number, name in enumerate(["east-0", "east-1", "north-0", "north-1"]):
        reply = read_reply(Request("", WHO, 0, {}, {}), asked(site, number, _who()), 10**6)
        facts = read_facts(reply.numbers)
        assert (facts.client, facts.domain) == (name, name[:-2])
        assert facts.classes == ["bars", "checks", "disc"]


def _who() -> Request:
    return Request("", WHO, 0, {}, {})


def test_a_task_is_answered_as_in_one_process(site: Site) -> None:
    setting = build(small_config())
    settings = {"splits": ["test"], "batch_size": 8}
    request = Request("east-1", "evaluate", 1, setting.initial, settings)
    (here,) = setting.federation.engine.run([request])
    there = asked(site, 1, request)
    said, own = json.loads(there.header), json.loads(encoded(here).header)
    del said["seconds"], own["seconds"]
    assert said == own
    assert same_bits(decode_tensors(there.tensors), here.tensors)


def test_a_failing_task_is_an_answer_too(site: Site) -> None:
    said = json.loads(asked(site, 0, Request("east-0", "juggle", 1, {}, {})).header)
    assert "no task is called 'juggle'" in said["error"]
