"""How far the simulation of a recording can be trusted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _runslice
from ._answer import Answer
from ._options import Computer, options_of
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Score(Answer[_runslice.Scored]):
    """For which questions the simulation of a recording can be trusted. docs/score.md."""

    __slots__ = ()

    @property
    def answer(self) -> str:
        """What to trust it for, what not, and what it cannot tell, in sentences."""
        return self._made.answer

    @property
    def status(self) -> int:
        """What ``runslice score`` ends with: 0, or 6 if nothing can be said of any part."""
        return self._made.status

    @property
    def parts(self) -> dict[str, str]:
        """The parts and their verdicts: ``trusted``, ``roughly``, ``not_trusted``, ``undecided``,
        ``cannot_be_told`` or ``grows``."""
        return {part["part"]: part["verdict"] for part in self.json()["parts"]}

    @property
    def table(self) -> Table:
        """A row for each part: errors as factors, skill and reach with their intervals."""
        return Table(self._made.table())

    def write(self, format: str = "human") -> bytes:
        """What ``runslice score`` writes: ``human``, ``json``, ``csv``, ``parquet``.

        Raises:
            UsageError: there is no such format.
        """
        return self._made.write(format)

    def save(self, recording: str | os.PathLike[str]) -> None:
        """Keep it beside the recording: ``runslice sim --from`` and ``choose`` then warn by it.

        Raises:
            OSError: the file cannot be written.
        """
        with open(f"{os.fspath(recording)}.score.json", "wb") as file:
            file.write(self.write("json"))

    def __repr__(self) -> str:
        return f"<runslice.Score: {self.answer}>"


def score(
    recording: str | os.PathLike[str],
    second: str | os.PathLike[str] | None = None,
    *,
    recorded_under: str | os.PathLike[str] | None = None,
    recorded_on: str | None = None,
    window: str | None = None,
    resample_seed: int | None = None,
    jobs: int | None = None,
    **machine: Unpack[Computer],
) -> Score:
    """Say for which questions the simulation of a recording can be trusted. It is
    ``runslice score``: its first half, simulated, is held against its second.

    Args:
        recording: the file of ``--events``, or a trace of perf, trace-cmd, ftrace or Perfetto.
        second: a second recording of the same load. Then all of the first one is held against it.
        recorded_under: the scheduler that it was recorded under, as the command line calls it.
            Default: what the recording says.
        recorded_on: version of the kernel that it was recorded on, ``"5.10"``. Default: likewise.
        window: part of the trace to use, ``"2s..5s"``. Default: all.
        resample_seed: seed of the random resampling. Default: 1.
        jobs: threads. The number does not change the results.
        machine: see ``Computer``.

    Raises:
        UsageError: a value does not exist, or nothing says which scheduler it was recorded under.
        Error: a file is bad, or too short.
    """
    options: dict[str, object] = {
        "recorded_under": None if recorded_under is None else os.fspath(recorded_under),
        "recorded_on": recorded_on,
        "window": window,
        "resample_seed": resample_seed,
        "jobs": jobs,
    }
    options = {key: value for key, value in options.items() if value is not None}
    options |= options_of(machine, Computer)
    files = os.fspath(recording), None if second is None else os.fspath(second)
    return Score(_runslice.Scored.of(*files, options))
