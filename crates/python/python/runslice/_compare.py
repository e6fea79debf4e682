"""Whether sets of runs differ."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _runslice
from ._answer import Answer
from ._run import Run
from ._table import Table


class Verdict(Answer[_runslice.Verdict]):
    """Whether sets of runs differ, by how much, and how certain that is. docs/comparing.md."""

    __slots__ = ()

    @property
    def sentences(self) -> list[str]:
        """The answer, in sentences."""
        return self._made.sentences()

    @property
    def status(self) -> int:
        """What ``runslice compare`` ends with: 0, 5 if a limit of ``fail_if`` is exceeded, 6 if the
        runs do not decide."""
        return self._made.status

    @property
    def decided(self) -> bool:
        """Whether the runs decide anything."""
        return self.status != 6

    @property
    def table(self) -> Table:
        """A row for each metric and scheduler: medians, ratio with its interval, verdict."""
        return Table(self._made.table())

    def write(self, format: str = "human") -> bytes:
        """What ``runslice compare`` writes: ``human``, ``html``, ``json``, ``csv``, ``parquet``.

        Raises:
            UsageError: there is no such format.
        """
        return self._made.write(format)

    def __repr__(self) -> str:
        return f"<runslice.Verdict: {' '.join(self.sentences)}>"


def compare(
    a: Run | str | os.PathLike[str],
    *others: Run | str | os.PathLike[str],
    baseline: str | None = None,
    again: str | None = None,
    metrics: Sequence[str] = (),
    margin: float | None = None,
    resample_seed: int | None = None,
    fail_if: str | None = None,
) -> Verdict:
    """Compare sets of runs. It is ``runslice compare``.

    Args:
        a: runs, or the path of a file or folder of runs. Alone, its policies are compared with each
            other; each set takes several runs: ``simulate(..., runs=20)``.
        others: each is compared with ``a``.
        baseline: the policy of ``a`` to compare with, if ``a`` is alone. Default: its first.
        again: a policy of ``a`` that is the baseline once more, to estimate noise.
        metrics: metrics to compare, such as ``"all.wakeup_ns_p99"``; ``*`` stands for any text.
            Default: the goals of the workload.
        margin: smallest change that matters, in per cent. Default: 3.
        resample_seed: seed of the random resampling. Default: 1.
        fail_if: ``"slower"``, ``"slower=PERCENT"`` or ``"different"``: see ``Verdict.status``.

    Raises:
        UsageError: a metric, policy or value does not exist.
        Error: a file is bad, or nothing can be compared.
    """
    options: dict[str, object] = {
        "baseline": baseline,
        "again": again,
        "metric": list(metrics),
        "margin": margin,
        "resample_seed": resample_seed,
        "fail_if": fail_if,
    }
    options = {key: value for key, value in options.items() if value is not None}
    sets = [_set(it, number) for number, it in enumerate((a, *others))]
    return Verdict(_runslice.Verdict.of(sets, options))


def _set(given: Run | str | os.PathLike[str], number: int) -> tuple[str, bytes] | str:
    if not isinstance(given, Run):
        return os.fspath(given)
    letter = chr(ord("a") + number) if number < 26 else f"run{number + 1}"
    return f"{letter}.json", given.write("json")
