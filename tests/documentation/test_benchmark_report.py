"""What was measured comes out as it was: in the table, in the plots, with the machine beside it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ON = {
    "program": "lineitem",
    "cpu": "A CPU",
    "cores": 2,
    "python": "3.11.7",
    "pyspark": "4.3.0",
    "pyarrow": "20.0.0",
    "filesink": "1.2.3",
    "commit": "abc1234",
    "date": "2026-11-21T15:00:00+00:00",
}
FLAT = {
    "title": "lineitem flat",
    "unit": "seconds",
    "ours": "filesink",
    "baseline": "df.write.parquet",
    "our_values": [3.0, 4.0, 9.0],
    "baseline_values": [6.0, 5.0, 6.0],
}
EPOCHS = {
    "title": "epochs parts close",
    "milliseconds": [90] * 100 + [100] * 600 + [110] * 600,
    "ledger_files": 30,
    "ledger_bytes": 2_500_000,
}
MEMORY = {"title": "2,000 buckets", "facts": {"largest worker": "300 MB"}}


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program; programs of that directory find one another there."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("report")


@pytest.fixture
def page(report: ModuleType, tmp_path: Path) -> str:
    """The page of three results."""
    for number, values in enumerate((FLAT, EPOCHS, MEMORY)):
        (tmp_path / f"{number}.json").write_text(json.dumps({**values, "on": ON}))
    report.write(report.load(tmp_path), tmp_path)
    return (tmp_path / "benchmarks.md").read_text()


def test_a_comparison_is_a_row_with_the_median_of_its_ratios(page: str) -> None:
    """3/6, 4/5, 9/6: the median of the ratios, not the ratio of the medians."""
    row = "| 1 | `lineitem.py` | lineitem flat | df.write.parquet | 6 s | 4 s | 3 | 0.80 | 0.50 to 1.50 |"
    assert row in page.splitlines()


def test_floors_are_not_taken_for_ours(report: ModuleType, tmp_path: Path) -> None:
    """Rows that were dropped are nothing that ours has written: another table, and no bar of the plot."""
    floor = {**FLAT, "title": "lineitem as text", "ours": "rows dropped in Python"}
    for name, values, on in (("flat", FLAT, ON), ("floor", floor, {**ON, "program": "floors"})):
        (tmp_path / f"{name}.json").write_text(json.dumps({**values, "on": on}))
    report.write(report.load(tmp_path), tmp_path)
    compared, floors = (tmp_path / "benchmarks.md").read_text().split("## Floors")
    assert "| lineitem flat |" in compared
    assert "lineitem as text" not in compared
    assert "| `floors.py` | lineitem as text | df.write.parquet | 6 s | 4 s | 3 | 0.80 |" in floors
    assert "lineitem as text" not in (tmp_path / report.RATIOS).read_text()


def test_a_single_pair_has_no_spread(report: ModuleType, tmp_path: Path) -> None:
    """A range of 0.50 to 0.50 would look like the surest figure of the page; it is the least sure."""
    once = {**FLAT, "our_values": [3.0], "baseline_values": [6.0]}
    (tmp_path / "once.json").write_text(json.dumps({**once, "on": ON}))
    report.write(report.load(tmp_path), tmp_path)
    assert "| 6 s | 3 s | 1 | 0.50 | unknown |" in (tmp_path / "benchmarks.md").read_text()


def test_rows_say_on_what_they_were_measured(report: ModuleType, tmp_path: Path) -> None:
    """Figures of two Sparks stand on one page; whoever compares them must see that."""
    older = {**ON, "pyspark": "4.1.4"}
    for number, (values, on) in enumerate([(FLAT, ON), ({**FLAT, "title": "lineitem older"}, older)]):
        (tmp_path / f"{number}.json").write_text(json.dumps({**values, "on": on}))
    report.write(report.load(tmp_path), tmp_path)
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    assert any(line.startswith("1. ") and "PySpark 4.3.0" in line for line in lines)
    assert any(line.startswith("2. ") and "PySpark 4.1.4" in line for line in lines)
    assert any(line.startswith("| 2 | `lineitem.py` | lineitem older |") for line in lines)


def test_epochs_are_a_row_with_early_and_late_cost(page: str) -> None:
    """Whoever looks for growth finds both windows, and the size of the ledger."""
    row = "| 1 | parts close | 1,300 | 100 ms | 110 ms | 1.10 | 30 files, 2.5 MB |"
    assert row in page.splitlines()


def test_other_facts_are_not_left_out(page: str) -> None:
    """What a program kept besides times is on the page."""
    assert "| 1 | 2,000 buckets: largest worker | 300 MB |" in page.splitlines()


def test_the_machine_is_named_once(page: str) -> None:
    """Three results of one machine and one commit: one line."""
    assert page.count("A CPU, 2 cores; Python 3.11.7, PySpark 4.3.0") == 1
    assert "at abc1234, 2026-11-21" in page


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("name", "text"), [("bench-ratios", "lineitem flat"), ("bench-epochs", "parts close")]
)
def test_plots_are_vector_graphics_that_name_what_they_show(name: str, text: str, tmp_path: Path) -> None:
    """A plot without its labels would be a picture of nothing."""
    drawing = ET.parse(tmp_path / "images" / f"{name}.svg")  # noqa: S314 - written a moment ago
    assert text in "".join(drawing.getroot().itertext())


def test_plots_do_not_change_by_themselves(report: ModuleType, page: str, tmp_path: Path) -> None:
    """The same results give the same bytes, so a repository shows no change where there is none."""
    del page
    before = (tmp_path / "images" / "bench-ratios.svg").read_bytes()
    report.write(report.load(tmp_path), tmp_path)
    assert (tmp_path / "images" / "bench-ratios.svg").read_bytes() == before


def test_no_results_are_said_to_be_none(report: ModuleType, tmp_path: Path) -> None:
    """An empty page would look like a benchmark without findings."""
    with pytest.raises(SystemExit, match="make bench"):
        report.write(report.load(tmp_path), tmp_path)


def test_what_is_published_replaces_what_was_measured_before(report: ModuleType, tmp_path: Path) -> None:
    """One program is repeated, and the page keeps the rows of the others."""
    results, published = tmp_path / "results", tmp_path / "published"
    results.mkdir()
    for titles in (("flat", "months"), ("flat",)):
        for file in results.glob("*.json"):
            file.unlink()
        for title in titles:
            once = {**FLAT, "title": title, "our_values": [float(len(titles))] * 3}
            (results / f"{title}.json").write_text(json.dumps({**once, "on": ON}))
        report.publish(results, published)
    ours = {each.values["title"]: each.values["our_values"][0] for each in report.load(published)}
    assert ours == {"flat": 1.0, "months": 2.0}


def test_a_result_without_a_place_on_the_page_is_refused(report: ModuleType, tmp_path: Path) -> None:
    """It would be missing, and nobody would know."""
    (tmp_path / "lost.json").write_text(json.dumps({"title": "memory", "peak": 7, "on": ON}))
    with pytest.raises(SystemExit, match=r"lost\.json"):
        report.load(tmp_path)


def test_a_setting_names_machine_versions_and_commit(report: ModuleType) -> None:
    """What a figure cannot be repeated without."""
    del report
    found = importlib.import_module("setting").setting()
    assert {*ON} <= {*found}
    assert all(found.values())
