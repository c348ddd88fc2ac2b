"""What K and V see, as pictures: reconstructions from either, and maps of their latents."""

import numpy as np
import torch
from numpy.typing import NDArray

from foul.federation.federation import EVALUATION, Federation, RoundLog
from foul.federation.messages import ClientInfo, Tensors

IMAGES_PER_DOMAIN = 3
POINTS_PER_DOMAIN = 100


def reconstructions(federation: Federation, tensors: Tensors) -> Tensors:
    """Test images of each domain and what D makes of both latents and of either alone."""
    clients = _first_of_each_domain(federation)
    if not clients:
        return {}
    found: dict[str, list[torch.Tensor]] = {}
    for reply in federation.ask(
        "reconstruct",
        clients,
        tensors,
        {"samples": IMAGES_PER_DOMAIN},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        for name, images in reply.tensors.items():
            found.setdefault(name, []).append(images)
    return {name: torch.cat(images) for name, images in found.items()}


def latent_maps(federation: Federation, tensors: Tensors) -> tuple[Tensors, list[str]]:
    """Maps of z_K and z_V in two dimensions, each point's class and domain, and the domains."""
    domains = sorted({client.domain for client in federation.clients})
    clients = len(federation.clients) / len(domains)
    share = max(1, round(POINTS_PER_DOMAIN / clients))
    found: dict[str, list[torch.Tensor]] = {"k": [], "v": [], "class": [], "domain": []}
    names = {client.id: client.domain for client in federation.clients}
    for reply in federation.ask(
        "latents",
        federation.clients,
        tensors,
        {"samples": share},
        round=0,
        stage=EVALUATION,
        log=RoundLog(),
    ):
        for name in ("k", "v", "class"):
            found[name].append(reply.tensors[name])
        place = domains.index(names[reply.client])
        found["domain"].append(torch.full((len(reply.tensors["class"]),), place))
    joined = {name: torch.cat(parts) for name, parts in found.items()}
    return {
        "k_map": torch.from_numpy(flattened(joined["k"].double().numpy(), federation.seed)),
        "v_map": torch.from_numpy(flattened(joined["v"].double().numpy(), federation.seed)),
        "class": joined["class"],
        "domain": joined["domain"],
    }, domains


def flattened(points: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    """A map of the points in which neighbours stay neighbours (t-SNE)."""
    if len(points) < 4:
        return np.zeros((len(points), 2), np.float32)
    # An encoder that says nothing has no two directions to begin with.
    start = "pca" if np.linalg.matrix_rank(points - points.mean(0)) > 1 else "random"
    # Here, because it takes a second that other commands need not wait for.
    from sklearn.manifold import TSNE

    tsne = TSNE(perplexity=min(30.0, (len(points) - 1) / 3), init=start, random_state=seed)
    placed: NDArray[np.float32] = tsne.fit_transform(points).astype(np.float32)
    return placed


def _first_of_each_domain(federation: Federation) -> list[ClientInfo]:
    first: dict[str, ClientInfo] = {}
    for client in federation.clients:
        if client.samples.get("test", 0):
            first.setdefault(client.domain, client)
    return [first[domain] for domain in sorted(first)]
