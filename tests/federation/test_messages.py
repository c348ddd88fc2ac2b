import torch

from foul.federation.messages import join_groups, take_group


def test_groups_come_apart_as_they_were_joined() -> None:
    groups = {"model": {"E.x": torch.ones(1)}, "modelled": {"E.x": torch.zeros(1)}, "none": {}}
    joined = join_groups(groups)
    assert len(joined) == 2
    for name, tensors in groups.items():
        assert take_group(joined, name) == tensors
