"""What answers have in common, whatever was asked."""

from __future__ import annotations

import html
import json
from typing import Any, Generic, TypeVar

from . import _runslice

Made = TypeVar("Made", _runslice.Chosen, _runslice.Scored, _runslice.Verdict)


class Answer(Generic[Made]):
    """An answer that the command line gives, too, in several forms."""

    __slots__ = ("_made",)

    _made: Made

    def __init__(self, made: Made) -> None:
        self._made = made

    def json(self) -> dict[str, Any]:
        """The document that the command line writes with ``--format json``, read. Times are in
        nanoseconds."""
        document: dict[str, Any] = json.loads(self._made.write("json"))
        return document

    def command(self, format: str = "human") -> list[str]:
        """The words of the command line that writes the same. Runs that are in no file are called
        ``a.json``, ``b.json`` and so on."""
        return self._made.command(format)

    def __str__(self) -> str:
        return self._made.write("human").decode()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
