from foul.report.charts.clients import Bar, client_bars
from foul.report.charts.style import Look
from report.drawn import bars, names, paths

LOOK = Look("#0072B2", "o")


def test_what_was_not_measured_is_not_drawn() -> None:
    told = [Bar("a", True, 40.0, None, None), Bar("b", False, None, 80.0, None)]
    axis = client_bars(told, "foul", LOOK).axes[0]
    assert [bar.get_width() for bar in bars(axis)] == [40, 0]
    assert paths(axis) == [([80], [1])]


def test_forgotten_clients_stand_out_in_the_same_colour() -> None:
    told = [Bar("a", True, 40.0, 90.0, 50.0), Bar("b", False, 95.0, 90.0, 92.0)]
    figure = client_bars(told, "foul", LOOK)
    first, second = figure.axes[0].patches
    assert (first.get_hatch(), second.get_hatch()) == ("////", "")
    assert first.get_facecolor()[:3] == second.get_facecolor()[:3]
    weights = [tick.get_fontweight() for tick in figure.axes[0].get_yticklabels()]
    assert weights == ["bold", "normal"]
    assert set(names(figure)) == {
        *("foul, to forget", "foul, to retain"),
        *("learned", "retrain"),
    }


def test_the_first_client_is_on_top() -> None:
    told = [Bar(name, False, 50.0, None, None) for name in ("a", "b", "c")]
    low, high = client_bars(told, "foul", LOOK).axes[0].get_ylim()
    assert low > 2 > 0 > high
