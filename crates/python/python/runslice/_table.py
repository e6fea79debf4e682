"""Tables of results."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _runslice

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN = 20
"""Rows that a notebook shows."""


class Table:
    """A table of Arrow columns, of shape ``(rows, columns)``.

    It has the Arrow PyCapsule interface: ``pyarrow.table(table)``, ``polars.DataFrame(table)`` and
    others take over its memory without a copy. The name of a column has its unit:
    ``wakeup_ns_p99`` is in nanoseconds, ``share_ppm`` in millionths. docs/events.md describes the
    columns.
    """

    __slots__ = ("_table",)

    def __init__(self, table: _runslice.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._table.column_names

    def __len__(self) -> int:
        return self._table.num_rows

    def to_arrow(self) -> pyarrow.Table:
        """The same for pyarrow, which must be installed."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The same for pandas, which must be installed, and pyarrow with it."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The same for polars, which must be installed; nothing else is needed."""
        import polars

        frame = polars.DataFrame(self)
        return frame

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries; what was not measured is ``None``. Takes pyarrow."""
        for batch in self.to_arrow().to_batches(max_chunksize=1024):
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        return f"<runslice.Table: {len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        try:
            head = self.to_arrow().slice(0, _SHOWN)
        except ImportError:
            return f"<p>{html.escape(repr(self))}; install pyarrow to see them</p>"
        names = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        lines = [f"<tr>{names}</tr>"]
        for row in head.to_pylist():
            cells = ("" if it is None else html.escape(str(it)) for it in row.values())
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        more = len(self) - head.num_rows
        note = f"<p>{more} more rows</p>" if more > 0 else ""
        return f"<table>{''.join(lines)}</table>{note}"
