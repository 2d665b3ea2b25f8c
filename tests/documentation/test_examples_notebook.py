"""The notebook that people copy runs from its top, and what it shows is true."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOUR = EXAMPLES / "tour.ipynb"
CELLS = json.loads(TOUR.read_text())["cells"]


def test_its_first_line_is_a_question() -> None:
    """And the page of examples asks it, too, in the same words."""
    question = CELLS[0]["source"][0].strip().removeprefix("# ")
    assert question.endswith("?")
    assert question in (EXAMPLES / "README.md").read_text()
    assert TOUR.name in (EXAMPLES / "README.md").read_text()


def test_it_is_kept_without_outputs_and_in_short_cells() -> None:
    """Outputs would be those of somebody's machine; a cell is read at a glance."""
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert max(len(cell["source"]) for cell in CELLS) < 15


@pytest.mark.spark
@pytest.mark.slow
def test_every_row_is_there_once_after_the_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed as it is; its last cell says what each reader has found."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=400, kernel_name="python3").execute(cwd=str(tmp_path))
    told = ast.literal_eval(notebook.cells[-1].outputs[-1].data["text/plain"])
    assert 0 < told.pop("rows after the kill") < 1000
    assert told == {
        "rows": 1000,
        "different rows": 1000,
        "rows by FileSource": 1000,
        "rows by the sink": 1000,
        "fsck finds nothing": True,
    }
