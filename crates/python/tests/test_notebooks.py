"""The notebooks of the documents run from begin to end."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "docs/notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks_without_kept_results() -> None:
    import json

    assert len(BOOKS) == 3
    for book in BOOKS:
        cells = json.loads(book.read_text())["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), book


@pytest.mark.long
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs(book: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(book, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown), "no picture was drawn"
