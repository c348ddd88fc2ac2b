import torch

from foul.data import ordered_batches, shuffled_batches, to_float, to_unit
from foul.data.batches import MEAN, STD


def shuffled(n: int, batch_size: int, seed: int = 0) -> list[torch.Tensor]:
    return list(shuffled_batches(n, batch_size, torch.Generator().manual_seed(seed)))


def test_an_epoch_visits_every_sample_once() -> None:
    batches = shuffled(10, 4)
    assert [len(rows) for rows in batches] == [4, 4, 2]
    assert torch.cat(batches).sort().values.tolist() == list(range(10))


def test_the_order_is_the_generators() -> None:
    assert torch.cat(shuffled(50, 8)).equal(torch.cat(shuffled(50, 8)))
    assert not torch.cat(shuffled(50, 8, seed=1)).equal(torch.cat(shuffled(50, 8)))


def test_a_last_batch_of_one_is_dropped_unless_all_are() -> None:
    assert [len(rows) for rows in shuffled(9, 4)] == [4, 4]
    assert [len(rows) for rows in shuffled(1, 4)] == [1]
    assert [len(rows) for rows in shuffled(3, 1)] == [1, 1, 1]
    assert shuffled(0, 4) == []


def test_ordered_batches_keep_order_and_every_sample() -> None:
    assert [rows.tolist() for rows in ordered_batches(5, 2)] == [[0, 1], [2, 3], [4]]


def test_to_float_is_the_usual_normalisation() -> None:
    stored = torch.randint(0, 256, (5, 7, 9, 3), dtype=torch.uint8)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    for images in (stored.permute(0, 3, 1, 2), stored.permute(0, 3, 1, 2).contiguous()):
        result = to_float(images)
        torch.testing.assert_close(result, (images.float() / 255 - mean) / std)
        assert result.dtype == torch.float32
        assert result.is_contiguous(memory_format=torch.channels_last)


def test_to_float_of_nothing() -> None:
    assert to_float(torch.zeros(0, 3, 8, 8, dtype=torch.uint8)).shape == (0, 3, 8, 8)


def test_to_float_leaves_its_input_alone() -> None:
    images = torch.full((1, 3, 2, 2), 7, dtype=torch.uint8)
    to_float(images)
    assert (images == 7).all()


def test_to_unit_undoes_to_float() -> None:
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    torch.testing.assert_close(to_unit(to_float(images)).flatten(), torch.tensor([0.0, 0.2, 1.0]))
