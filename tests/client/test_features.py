from pathlib import Path

import torch
from factories import same_bits

from foul.client.features import FeatureStore
from foul.data import Samples

SAMPLES = Samples.of(torch.zeros(5, 4, 4, 3, dtype=torch.uint8), torch.tensor([0, 1, 2, 1, 0]))
EXTRACTED = torch.arange(5 * 2 * 2 * 3.0).reshape(5, 2, 2, 3)
Z_K = torch.arange(5 * 4.0).reshape(5, 4)


def test_what_was_kept_comes_back_as_batches(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.save("key", "ink-0", "train", EXTRACTED, Z_K)
    features = FeatureStore(tmp_path).load("key", "ink-0", "train", SAMPLES)
    assert features is not None
    assert len(features) == 5
    rows = torch.tensor([3, 0])
    extracted, z_k, labels = features.batch(rows)
    assert extracted.equal(EXTRACTED.permute(0, 3, 1, 2)[rows])
    assert z_k.equal(Z_K[rows])
    assert labels.tolist() == [1, 0]
    assert not list(tmp_path.rglob("*.tmp"))


def test_another_key_client_split_or_number_of_samples_is_not_it(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.save("key", "ink-0", "train", EXTRACTED, Z_K)
    assert store.load("other", "ink-0", "train", SAMPLES) is None
    assert store.load("key", "ink-1", "train", SAMPLES) is None
    assert store.load("key", "ink-0", "validation", SAMPLES) is None
    assert store.load("key", "ink-0", "train", SAMPLES.subset([0, 1])) is None


def test_writing_to_what_was_loaded_changes_no_file(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.save("key", "ink-0", "train", EXTRACTED, Z_K)
    first = store.load("key", "ink-0", "train", SAMPLES)
    assert first is not None
    first.extracted.zero_()
    second = store.load("key", "ink-0", "train", SAMPLES)
    assert second is not None
    assert second.extracted.equal(EXTRACTED)


def test_the_rest_of_the_frozen_tensors(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    rest = {"head.bias": torch.ones(3), "V.bn.num_batches_tracked": torch.tensor(7)}
    assert store.load_rest("key") is None
    store.save_rest("key", rest)
    loaded = store.load_rest("key")
    assert loaded is not None
    assert same_bits(loaded, rest)
    assert store.load_rest("other") is None


def test_what_the_last_two_rounds_kept_stays(tmp_path: Path) -> None:
    """A round that is done again needs that of the round before it."""
    store = FeatureStore(tmp_path)
    for number in (1, 2, 3, 3):
        store.keep("ink-0", "lost", number, {"V.bias": torch.full((2,), float(number))})
    assert store.kept("ink-0", "lost", 1) is None
    for number in (2, 3):
        loaded = store.kept("ink-0", "lost", number)
        assert loaded is not None
        assert same_bits(loaded, {"V.bias": torch.full((2,), float(number))})
    assert store.kept("ink-0", "lost", 4) is None
    assert store.kept("ink-1", "lost", 3) is None
    assert not list(tmp_path.rglob("*.tmp"))
