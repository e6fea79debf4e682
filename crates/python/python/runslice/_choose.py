"""Which scheduler is best for a load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _runslice
from ._answer import Answer
from ._given import Policy, PolicyLike, Workload, WorkloadLike
from ._options import Setting, options_of
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Choice(Answer[_runslice.Chosen]):
    """Whether to change the scheduler for a load, what it costs, what it gains. docs/choose.md."""

    __slots__ = ()

    @property
    def answer(self) -> list[str]:
        """The answer, in sentences."""
        return self._made.answer

    @property
    def winner(self) -> str | None:
        """The candidate to change to: better at a goal, and surely not worse at any other."""
        winner = self._made.winner
        return None if winner is None else winner[0]

    @property
    def try_it(self) -> str | None:
        """The command that runs the winner on a kernel, as a shell takes it; of one machine."""
        winner = self._made.winner
        return None if winner is None else winner[1]

    @property
    def machines(self) -> dict[str, dict[str, float]] | None:
        """Of a folder: by candidate, on how many machines it is ``better``, ``alike``, ``worse``,
        ``cannot_tell``, and the share on which it is ``not_worse_at_least``. Else ``None``."""
        if self._made.machines is None:
            return None
        return {
            name: {
                "better": better,
                "alike": alike,
                "worse": worse,
                "cannot_tell": cannot_tell,
                "not_worse_at_least": share,
            }
            for name, (better, alike, worse, cannot_tell), share in self._made.machines
        }

    @property
    def status(self) -> int:
        """What ``runslice choose`` ends with: 0, or 6 if the runs do not decide."""
        return self._made.status

    @property
    def decided(self) -> bool:
        """Whether the runs decide."""
        return self.status != 6

    @property
    def table(self) -> Table:
        """A row for each candidate and goal: medians, ratio with its widened interval, answer."""
        return Table(self._made.table())

    def write(self, format: str = "human") -> bytes:
        """What ``runslice choose`` writes: ``human``, ``html``, ``json``, ``csv``, ``parquet``.

        Raises:
            UsageError: there is no such format.
        """
        return self._made.write(format)

    def __repr__(self) -> str:
        return f"<runslice.Choice: {' '.join(self.answer)}>"


def choose(
    workload: WorkloadLike,
    goals: str | Sequence[str] = (),
    *,
    policies: PolicyLike | Sequence[PolicyLike] = (),
    knobs: str | os.PathLike[str] | None = None,
    baseline: PolicyLike | None = None,
    runs: int | None = None,
    not_modelled: float | None = None,
    hardware_spread: bool = False,
    jobs: int | None = None,
    **machine: Unpack[Setting],
) -> Choice:
    """Say which scheduler is best for a load. It is ``runslice choose``.

    Args:
        workload: the workload, a recording, or a folder with a recording of each of many machines.
        goals: what is to become better, such as ``"p99 wait of ui"``. Default: the goals of the
            workload.
        policies: the candidates. Default: every built-in policy, unless ``knobs`` names some.
        knobs: file of a sweep, of which every combination of knobs is a candidate.
        baseline: the candidate that the others are held against. Default: the scheduler of today's
            kernels, ``"eevdf"``.
        runs: number of runs of each candidate, 1 to 10,000. Default: 10, or as many as it takes to
            decide all comparisons; of a recording 4 reruns.
        not_modelled: the error of a simulated ratio of two candidates, in per cent, by which
            intervals are widened. Default: the error that was measured against kernels.
        hardware_spread: ask again at every end of what is uncertain about the hardware; a scheduler
            is only named if it is named at all of them.
        jobs: threads. The number does not change the results. Default: one for each CPU.
        machine: see ``Setting``.

    Raises:
        UsageError: a policy, workload, goal or value does not exist.
        Error: a file is bad, the load states no goal, or the baseline fails under it.
    """
    options: dict[str, object] = {
        "goal": [goals] if isinstance(goals, str) else list(goals),
        "knobs": None if knobs is None else os.fspath(knobs),
        "runs": runs,
        "not_modelled": not_modelled,
        "hardware_spread": True if hardware_spread else None,
        "jobs": jobs,
    }
    options = {key: value for key, value in options.items() if value is not None}
    options |= options_of(machine, Setting)
    if isinstance(policies, (str, os.PathLike, Policy)):
        policies = [policies]
    candidates = [Policy(it)._policy for it in policies]
    base = None if baseline is None else Policy(baseline)._policy
    load = Workload(workload)._load
    return Choice(_runslice.Chosen.of(candidates, base, load, options))
