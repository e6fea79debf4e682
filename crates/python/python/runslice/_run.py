"""Simulated runs."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from ._explain import Explanation

from . import _runslice
from ._given import Policy, PolicyLike, Workload, WorkloadLike
from ._options import Machine, Time, options_of
from ._table import Table


@dataclass(frozen=True)
class Below:
    """A scheduler below another one in a run.

    Attributes:
        cgroup: where its cgroup is, such as ``"/app"``.
        policy: what tables call its policy.
        level: number of schedulers above it, 1 to 3.
        tasks: tasks that it has owned, each counted once for every time that it came.
        ran_ns: CPU time of tasks while it owned them, in nanoseconds.
        ejection: as that of ``End``, of this scheduler alone.
    """

    cgroup: str
    policy: str
    level: int
    tasks: int
    ran_ns: int
    ejection: str | None


@dataclass(frozen=True)
class End:
    """How one run ended.

    Attributes:
        policy: what tables call the policy.
        seed: seed of the run.
        elapsed_ns: simulated time until the end, in nanoseconds.
        ejection: kind, message and time in the kernel's words, if the policy was ejected.
        starved: number of tasks that waited to the end for longer than the watchdog allows.
        goals: what was measured of each goal that was asked for, in its unit: nanoseconds,
            millionths, or a second; ``None`` if the run has none.
        subs: the schedulers below the policy, in the order in which they came.
    """

    policy: str
    seed: int
    elapsed_ns: int
    ejection: str | None
    starved: int
    goals: list[float | None]
    subs: list[Below]


def request_of(
    policy: PolicyLike | Sequence[PolicyLike],
    workload: WorkloadLike | None,
    machine: Mapping[str, object],
    goals: Sequence[str] = (),
) -> _runslice.Request:
    """What is asked for, for the compiled half."""
    if isinstance(policy, (str, os.PathLike, Policy)):
        policy = [policy]
    policies = [Policy(it)._policy for it in policy]
    load = None if workload is None else Workload(workload)._load
    return _runslice.Request(policies, load, options_of(machine), list(goals))


def simulate(
    policy: PolicyLike | Sequence[PolicyLike],
    workload: WorkloadLike | None = None,
    *,
    goals: Sequence[str] = (),
    **machine: Unpack[Machine],
) -> Run:
    """Run one or more policies under a workload on a simulated machine.

    It is ``runslice sim``: the same request gives the same bytes. Python's other threads go on
    meanwhile. Ctrl-C ends the call at once.

    Args:
        policy: a policy, or several; each runs under the same workload.
        workload: the workload. The bundle of a recorded run has its own.
        goals: what to measure in every run besides, in the words of ``runslice choose``, such as
            ``"p99 wait of ui"``; see ``Run.ends``.
        machine: see ``Machine``: ``cpus=8``, ``seed=7``, ``runs=20``, ``duration="5s"`` ...

    Returns:
        The results. A policy that misbehaves is no error: see ``Run.ends``.

    Raises:
        UsageError: a policy, workload, knob or value does not exist.
        Error: a file is bad.
    """
    return Run(request_of(policy, workload, machine, goals).simulate())


class Run:
    """What came of ``simulate``: runs of one or more policies under one workload.

    Every table is of shape ``(rows, columns)``; each row begins with where it comes from: workload,
    machine, seed, policy, knobs.
    """

    __slots__ = ("_events", "_run")

    def __init__(self, run: _runslice.Run) -> None:
        self._run = run
        self._events: dict[tuple[int, bool], Table] = {}

    @property
    def groups(self) -> Table:
        """A row for each group of tasks that the workload declares, and one for all tasks."""
        return self.table("groups")

    @property
    def tasks(self) -> Table:
        """A row for each task."""
        return self.table("tasks")

    @property
    def deadlines(self) -> Table:
        """A row for each deadline of each group: how often it was met and missed."""
        return self.table("deadlines")

    @property
    def spans(self) -> Table:
        """A row for each span of each group: stretches of work that the workload times."""
        return self.table("spans")

    @property
    def counters(self) -> Table:
        """A row for each counter of each group: things that the workload counts."""
        return self.table("counters")

    @property
    def phases(self) -> Table:
        """A row for each phase of each group: parts of work that the workload names."""
        return self.table("phases")

    @property
    def cpus(self) -> Table:
        """A row for each CPU: where its time went."""
        return self.table("cpus")

    @property
    def hardware(self) -> Table:
        """A row for each group, and one for all tasks: work, energy, misfit. No rows where CPUs do
        not differ."""
        return self.table("hardware")

    @property
    def frequencies(self) -> Table:
        """A row for each frequency that each CPU had."""
        return self.table("frequencies")

    @property
    def events(self) -> Table:
        """Every event of the only run, in the order of time: see ``events_of``.

        Raises:
            UsageError: there are several runs.
        """
        if len(self.ends) != 1:
            raise _runslice.UsageError(
                f"there are {len(self.ends)} runs: choose one with events_of(NUMBER)"
            )
        return self.events_of(0)

    def table(self, name: str) -> Table:
        """A table of ``runslice sim --table``: ``groups``, ``tasks``, ``deadlines``, ``spans``,
        ``counters``, ``phases``, ``nice``, ``machine``, ``cpus``, ``hardware``, ``classes`` or
        ``frequencies``.

        Raises:
            UsageError: there is no such table.
        """
        return Table(self._run.table(name))

    def events_of(self, run: int, *, decisions: bool = False) -> Table:
        """Every event of one run, in the order of time. The run is simulated once more.

        Args:
            run: its number, as in ``ends``.
            decisions: also who put which task into which queue, looked at it, kicked or idled.

        Returns:
            Columns ``time_ns`` (since the begin), ``event`` (its kind), ``cpu``, ``task`` (number;
            null for none), ``name`` (of the task), ``detail``, ``a`` and ``b``. What the last three
            mean depends on the kind: docs/events.md, Kinds.

        Raises:
            UsageError: there is no such run.
        """
        key = (run, decisions)
        if key not in self._events:
            self._events[key] = Table(self._run.events(run, decisions))
        return self._events[key]

    @property
    def ends(self) -> list[End]:
        """How each run ended, policy by policy."""
        ends = self._run.ends()
        return [
            End(policy, seed, elapsed, ejection, starved, goals, [Below(*sub) for sub in subs])
            for policy, seed, elapsed, ejection, starved, goals, subs in ends
        ]

    @property
    def workload(self) -> str:
        """The workload's name."""
        return self._run.workload

    @property
    def machine(self) -> dict[str, Any]:
        """The machine, as JSON documents have it."""
        machine: dict[str, Any] = json.loads(self._run.machine)
        return machine

    def command(
        self, format: str = "", *, table: str = "", wide: bool = False, output: str | None = None
    ) -> list[str]:
        """The words of the command line that writes the same bytes as ``write`` with these values.

        Files of it that are only in memory here are called as they were named.

        Args:
            format: see ``write``.
            table: see ``write``.
            wide: see ``write``.
            output: see ``write``.
        """
        return self._run.command(format, table, wide, output)

    def write(
        self, format: str = "", *, table: str = "", wide: bool = False, output: str | None = None
    ) -> bytes:
        """What ``runslice sim`` writes.

        Args:
            format: ``human``, ``html``, ``json``, ``csv``, ``parquet``, ``junit`` or ``markdown``.
                Default: what the ending of ``output`` stands for, else ``human``.
            table: table for CSV and Parquet. Default: ``groups``.
            wide: all columns of the tables for people.
            output: the file that the bytes are for; nothing is written into it.

        Raises:
            UsageError: there is no such format or table.
        """
        return self._run.write(format, table, wide, output)

    def save(self, path: str | os.PathLike[str], *, table: str = "") -> None:
        """Write the results into a file, in the format that its ending stands for.

        Args:
            path: the file, ending in ``.json``, ``.csv``, ``.parquet``, ``.html`` (a page with
                pictures), ``.md`` or ``.xml``.
            table: table for CSV and Parquet. Default: ``groups``.

        Raises:
            UsageError: the ending stands for nothing that these results have.
            OSError: the file cannot be written.
        """
        path = os.fspath(path)
        data = self.write(table=table, output=path)
        with open(path, "wb") as file:
            file.write(data)

    def json(self) -> dict[str, Any]:
        """The JSON document of ``runslice sim``, read."""
        document: dict[str, Any] = json.loads(self.write("json"))
        return document

    def explain(
        self, run: int = 0, *, task: str | None = None, worst: int | None = None
    ) -> Explanation:
        """Why a task waited, or the policy was ejected, in one of the runs. It is simulated once
        more.

        Args:
            run: its number, as in ``ends``.
            task: explain the waits of this task, or of this group's tasks.
            worst: explain so many of the longest waits, 1 to 1000. Default: 1 with ``task``, else
                none.

        Raises:
            UsageError: there is no such run, or no such task.
        """
        from ._explain import Explanation

        return Explanation(self._run.alone(run).explain(worst, task))

    def plot_waits(self, ax: Axes | None = None) -> Axes:
        """Draw median, p99 and longest wait for a CPU of each group under each policy, in ms."""
        from . import _plot

        return _plot.waits(self, ax)

    def plot_deadlines(self, ax: Axes | None = None) -> Axes:
        """Draw how many deadlines of each group were missed under each policy, in per cent."""
        from . import _plot

        return _plot.deadlines(self, ax)

    def plot_cpus(self, ax: Axes | None = None) -> Axes:
        """Draw where the time of each CPU went, in seconds."""
        from . import _plot

        return _plot.cpus(self, ax)

    def plot_timeline(
        self, begin: Time = 0, end: Time | None = None, *, run: int = 0, ax: Axes | None = None
    ) -> Axes:
        """Draw which task had which CPU from ``begin`` to ``end`` of one run.

        Args:
            begin: since the begin of the run.
            end: the same. Default: 100 ms after ``begin``.
            run: its number, as in ``ends``.
            ax: axes of matplotlib to draw into. Default: new ones.
        """
        from . import _plot

        return _plot.timeline(self, run, begin, end, ax)

    def __str__(self) -> str:
        return self.write("human").decode()

    def __repr__(self) -> str:
        policies = list(dict.fromkeys(end.policy for end in self.ends))
        return f"<runslice.Run: {', '.join(policies)} under {self.workload}, {len(self.ends)} runs>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
