"""A network of either normalisation whose running statistics are not the initial ones."""

import pytest
import torch
from factories import MakeNet

from foul.models import DisentangledNet


@pytest.fixture(params=["group", "batch"])
def net(request: pytest.FixtureRequest, make_net: MakeNet) -> DisentangledNet:
    net = make_net(seed=3, norm=request.param)
    with torch.no_grad():
        net(torch.randn(64, 3, 16, 16, generator=torch.Generator().manual_seed(1)))
    return net.eval()
