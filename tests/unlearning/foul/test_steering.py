from foul.unlearning.foul.steering import weighted_mean


def test_means_are_weighted_unless_nothing_weighs() -> None:
    assert weighted_mean([1.0, 0.0], [1, 3]) == 0.25
    assert weighted_mean([1.0, 0.0], [0, 0]) == 0.5
