from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import MakeNet
from forget_cases import engine_of, gone, make_case

from foul.config.schema import FederationConfig
from foul.data import ClientData
from foul.evaluation.pictures import (
    IMAGES_PER_DOMAIN,
    POINTS_PER_DOMAIN,
    flattened,
    latent_maps,
    reconstructions,
)

DOMAINS = ["east", "north", "south", "west"]


def test_each_domain_shows_some_images(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    found = reconstructions(case.federation, case.learned)
    crossed = engine_of(case).of_task("reconstruct")
    assert [request.client for request, _ in crossed] == [f"{name}-0" for name in DOMAINS]
    assert set(found) == {"original", "both", "k_only", "v_only"}
    for name, images in found.items():
        assert images.shape == (4 * IMAGES_PER_DOMAIN, 16, 16, 3)
        for place, (_, reply) in enumerate(crossed):
            rows = slice(place * IMAGES_PER_DOMAIN, (place + 1) * IMAGES_PER_DOMAIN)
            assert images[rows].equal(reply.tensors[name])
    assert list(case.federation.ledger.totals) == ["evaluation"]


def test_another_client_shows_where_the_first_has_no_test_samples(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [
        replace(client, test=client.test.subset([]))
        if client.id == "north-0" or client.domain == "south"
        else client
        for client in tiny_clients
    ]
    case = make_case(make_net, clients, tmp_path)
    reconstructions(case.federation, case.learned)
    asked = [request.client for request, _ in engine_of(case).of_task("reconstruct")]
    assert asked == ["east-0", "north-1", "west-0"]


def test_without_test_samples_there_are_no_pictures(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    clients = [replace(client, test=client.test.subset([])) for client in tiny_clients]
    case = make_case(make_net, clients, tmp_path)
    assert reconstructions(case.federation, case.learned) == {}
    maps, domains = latent_maps(case.federation, case.learned)
    assert domains == DOMAINS
    assert {name: tuple(tensor.shape) for name, tensor in maps.items()} == {
        "k_map": (0, 2),
        "v_map": (0, 2),
        "class": (0,),
        "domain": (0,),
    }


def test_a_client_that_is_gone_shows_nothing(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(
        make_net,
        tiny_clients,
        tmp_path,
        meddle=gone("north", "reconstruct"),
        federation=FederationConfig(quorum=0.5),
    )
    found = reconstructions(case.federation, case.learned)
    assert len(found["original"]) == 3 * IMAGES_PER_DOMAIN


def test_every_point_has_its_class_and_domain(
    make_net: MakeNet, tiny_clients: tuple[ClientData, ...], tmp_path: Path
) -> None:
    case = make_case(make_net, tiny_clients, tmp_path)
    maps, domains = latent_maps(case.federation, case.learned)
    assert domains == DOMAINS
    # 50 of each of two clients were asked for; they have 12.
    asked = {r.settings["samples"] for r, _ in engine_of(case).of_task("latents")}
    assert asked == {POINTS_PER_DOMAIN // 2}
    ordered = sorted(tiny_clients, key=lambda client: client.id)
    classes = [label for client in ordered for label in client.test.targets.tolist()]
    places = [domains.index(client.domain) for client in ordered for _ in range(12)]
    assert maps["class"].tolist() == classes
    assert maps["domain"].tolist() == places
    for name in ("k_map", "v_map"):
        assert maps[name].shape == (96, 2)
        assert bool(maps[name].isfinite().all())
    assert not maps["k_map"].equal(maps["v_map"])
    again, _ = latent_maps(case.federation, case.learned)
    assert all(again[name].equal(maps[name]) for name in maps)


def test_groups_stay_together() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(0, 0.1, (15, 5)), rng.normal(50, 0.1, (15, 5))])
    placed = flattened(points, seed=0)
    apart = np.linalg.norm(placed[:, None] - placed, axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearest = apart.argmin(1)
    assert ((nearest < 15) == (np.arange(30) < 15)).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 3), (4, 3), (20, 1)])
def test_few_points_or_directions_have_a_map(shape: tuple[int, int]) -> None:
    placed = flattened(np.random.default_rng(0).normal(size=shape), seed=0)
    assert placed.shape == (shape[0], 2)
    assert placed.dtype == np.float32
    assert np.isfinite(placed).all()


def test_an_encoder_that_says_nothing_has_a_map() -> None:
    assert np.isfinite(flattened(np.ones((12, 3)), seed=0)).all()
