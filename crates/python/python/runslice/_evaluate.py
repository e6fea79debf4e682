"""How good policies are that programs write."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _runslice


class Evaluation:
    """What candidates came to, in their order. docs/evaluate.md describes the document."""

    __slots__ = ("_bytes", "_document")

    def __init__(self, content: bytes) -> None:
        self._bytes = content
        self._document: dict[str, Any] = json.loads(content)

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """One a candidate: ``status``, ``combined_score``, ``metrics``, ``limits``,
        ``artifacts``."""
        return list(self._document["candidates"])

    @property
    def held_out(self) -> bool:
        """Whether nobody but the owner of a key can know the draws."""
        return bool(self._document["held_out"])

    def json(self) -> dict[str, Any]:
        """The document of ``runslice evaluate --format json``."""
        return self._document

    def write(self) -> bytes:
        """The bytes of that document."""
        return self._bytes

    def __repr__(self) -> str:
        said = (f"{it['candidate']}: {it['combined_score']:.4f}" for it in self.candidates)
        return f"<runslice.Evaluation: {', '.join(said)}>"


def evaluate(
    spec: str | os.PathLike[str],
    candidates: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    key: bytes | None = None,
    epoch: int = 0,
    gate: bool = False,
    jobs: int | None = None,
) -> Evaluation:
    """Score policies that programs write; limits come first. It is ``runslice evaluate`` without
    its folder: nothing is kept, and nothing is counted.

    Args:
        spec: the TOML file with loads, goals, limits and the baseline.
        candidates: built-in names, objects or C sources, with knobs behind a colon.
        key: the key of the draws, at least 16 bytes. Default: one that everybody can know.
        epoch: which draws of that key.
        gate: whether the gate is asked, too. Who asks it often learns its draws.
        jobs: threads. The number does not change the answer.

    Raises:
        UsageError: a candidate, load or goal does not exist, or the key is too short.
        Error: a file is bad, or the baseline fails.
    """
    if isinstance(candidates, (str, os.PathLike)):
        candidates = [candidates]
    words = [os.fspath(it) for it in candidates]
    if key is not None and len(key) < 16:
        raise _runslice.UsageError(f"the key has {len(key)} bytes\n  it has at least 16")
    secret = None if key is None else (key, hashlib.sha256(key).hexdigest())
    return Evaluation(_runslice.evaluate(os.fspath(spec), words, secret, (epoch, gate, jobs)))


class SourceEvaluator:
    """Evaluates C sources that a search writes, one at a time: what the adapters share.

    Args:
        spec: see :func:`evaluate`.
        key: likewise. Keep it away from the process that writes candidates.
        epoch: likewise.
        jobs: likewise.
    """

    def __init__(
        self,
        spec: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        epoch: int = 0,
        jobs: int | None = None,
    ) -> None:
        self._options: dict[str, Any] = {"key": key, "epoch": epoch, "jobs": jobs}
        self._spec = os.fspath(spec)

    def judge(self, source: str) -> dict[str, Any]:
        """The candidate of the document for a source's text."""
        with tempfile.TemporaryDirectory(prefix="runslice-") as folder:
            # Nothing else lies in the folder that the source could read.
            path = Path(folder) / "candidate.bpf.c"
            path.write_text(source, encoding="utf-8")
            evaluation = evaluate(self._spec, path, **self._options)
        return evaluation.candidates[0]
