import torch

from foul.erasure.fingerprint import fingerprint


def test_names_types_shapes_and_values_all_count() -> None:
    base = {"a": torch.arange(6.0), "n": torch.tensor(3)}
    others = [
        {"b": base["a"], "n": base["n"]},
        {"a": base["a"].double(), "n": base["n"]},
        {"a": base["a"].reshape(2, 3), "n": base["n"]},
        {"a": base["a"] + torch.tensor([0, 0, 0, 0, 0, 1e-6]), "n": base["n"]},
        {"a": base["a"]},
    ]
    assert len({fingerprint(tensors) for tensors in (base, *others)}) == 6


def test_the_order_and_the_layout_in_memory_do_not_count() -> None:
    matrix = torch.arange(6.0).reshape(2, 3)
    one = {"a": matrix, "b": torch.ones(2)}
    other = {"b": torch.ones(2), "a": matrix.t().contiguous().t()}
    assert fingerprint(one) == fingerprint(other)
