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
_AT_ONCE = 1024
"""Rows that become Python's values at once."""


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
        """The same for pyarrow.

        Raises:
            ImportError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise _needs("arrow", "pyarrow") from error
        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The same for pandas.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        try:
            import pandas  # noqa: F401  (pyarrow takes it)
            import pyarrow
        except ImportError as error:
            raise _needs("pandas", "pandas and pyarrow") from error
        return pyarrow.table(self).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The same for polars, which needs nothing else.

        Raises:
            ImportError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise _needs("polars", "polars") from error
        frame = polars.DataFrame(self)
        return frame

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries; what was not measured is ``None``."""
        names = self.columns
        for begin in range(0, len(self), _AT_ONCE):
            for row in zip(*self._table.lists(begin, _AT_ONCE)):
                yield dict(zip(names, row))

    def __repr__(self) -> str:
        return f"<runslice.Table: {len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        names = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        lines = [f"<tr>{names}</tr>"]
        for row in zip(*self._table.lists(0, _SHOWN)):
            cells = ("" if it is None else html.escape(str(it)) for it in row)
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        more = len(self) - _SHOWN
        note = f"<p>{more} more rows</p>" if more > 0 else ""
        return f"<table>{''.join(lines)}</table>{note}"


def _needs(extra: str, what: str) -> ImportError:
    return ImportError(f"this takes {what}: pip install 'runslice[{extra}]'")
