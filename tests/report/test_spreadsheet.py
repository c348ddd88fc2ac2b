import csv
from io import StringIO

from foul.report.spreadsheet import to_csv

from .reported import THREE, entries, result


def test_a_line_per_result_and_a_column_per_field() -> None:
    text = to_csv(entries(*THREE, result("foul", 0.25, seed=1, t2f=3.5, k_probe=None)))
    lines = list(csv.DictReader(StringIO(text)))
    assert list(lines[0])[:4] == ["run", "forget", "method", "seed"]
    assert [(line["method"], line["seed"], line["fa"]) for line in lines] == [
        ("none", "0", "0.9"),
        ("foul", "0", "0.5"),
        ("retrain", "0", "0.6"),
        ("foul", "1", "0.25"),
    ]
    assert [line["t2f"] for line in lines] == ["", "", "", "3.5"]
    assert [line["mia_accuracy"] for line in lines] == ["", "0.55", "0.5", ""]
    assert not {"curve", "k_probe"} & set(lines[0])


def test_commas_and_quotes_survive() -> None:
    name = 'client:a,b "c"\nd'
    line = next(csv.DictReader(StringIO(to_csv(entries(result("foul", forget=name))))))
    assert line["forget"] == name
