from foul.unlearning.saved import label_of


def test_many_names_make_a_label_that_a_disk_takes() -> None:
    many = [f"client:{','.join(f'north-{n}' for n in range(count))}" for count in (99, 100)]
    one, other = (label_of("foul", text) for text in many)
    assert one != other
    assert max(len(one), len(other)) <= 140
