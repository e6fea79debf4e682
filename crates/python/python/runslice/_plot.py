"""Pictures of runs. They show what the tables say, and compute nothing of it anew."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._options import Time
    from ._run import Run

_MS = 1e6
"""Nanoseconds of a millisecond."""


def _axes(ax: Axes | None) -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots take matplotlib: pip install 'runslice[plot]'") from error
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax


def _bars(
    ax: Axes, rows: list[dict[str, Any]], group: str, values: dict[str, str], unit: float
) -> None:
    """A cluster of bars for each group, in it one for each policy and value."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    groups = list(dict.fromkeys(row[group] for row in rows))
    kinds = [(policy, column) for policy in policies for column in values]
    width = 0.8 / max(len(kinds), 1)
    for number, (policy, column) in enumerate(kinds):
        own = {row[group]: row[column] for row in rows if row["policy"] == policy}
        places = [at + (number + 0.5) * width - 0.4 for at in range(len(groups))]
        heights = [(own.get(name) or 0) / unit for name in groups]
        label = " ".join(filter(None, (policy, values[column])))
        ax.bar(places, heights, width, label=label)
    ax.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    ax.legend()


def _first_seed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of many runs the first of each policy is drawn."""
    seed = rows[0]["seed"] if rows else None
    return [row for row in rows if row["seed"] == seed]


def waits(run: Run, ax: Axes | None) -> Axes:
    """See ``Run.plot_waits``."""
    ax = _axes(ax)
    rows = _first_seed(list(run.groups.rows()))
    columns = {"wakeup_ns_p50": "median", "wakeup_ns_p99": "p99", "wakeup_ns_max": "max"}
    _bars(ax, rows, "group", columns, _MS)
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_ylabel("wait for a CPU after a wakeup (ms)")
    ax.set_title(run.workload)
    return ax


def deadlines(run: Run, ax: Axes | None) -> Axes:
    """See ``Run.plot_deadlines``."""
    ax = _axes(ax)
    rows = _first_seed(list(run.deadlines.rows()))
    for row in rows:
        row["what"] = f"{row['group']}: {row['deadline']}"
        row["missed_percent"] = 100 * row["missed"] / max(row["missed"] + row["met"], 1)
    _bars(ax, rows, "what", {"missed_percent": ""}, 1)
    ax.set_ylabel("deadlines missed (%)")
    ax.set_title(run.workload)
    return ax


def cpus(run: Run, ax: Axes | None) -> Axes:
    """See ``Run.plot_cpus``."""
    ax = _axes(ax)
    rows = _first_seed(list(run.cpus.rows()))
    names = [f"{row['policy']} {row['cpu']}" for row in rows]
    below = [0.0] * len(rows)
    for column in ("run_ns", "stolen_ns", "overhead_ns", "idle_ns"):
        heights = [row[column] / 1e9 for row in rows]
        ax.bar(names, heights, bottom=below, label=column.removesuffix("_ns"))
        below = [low + high for low, high in zip(below, heights)]
    ax.tick_params("x", rotation=60)
    ax.set_ylabel("time (s)")
    ax.legend()
    return ax


def _nanoseconds(time: Time) -> int:
    if isinstance(time, timedelta):
        return int(time.total_seconds() * 1e9)
    if isinstance(time, int):
        return time
    for unit, factor in (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if time.endswith(unit):
            return int(float(time.removesuffix(unit)) * factor)
    raise ValueError(f"{time!r} is no span of time such as '100ms'")


def timeline(run: Run, number: int, begin: Time, end: Time | None, ax: Axes | None) -> Axes:
    """See ``Run.plot_timeline``."""
    ax = _axes(ax)
    first = _nanoseconds(begin)
    last = first + 100_000_000 if end is None else _nanoseconds(end)
    turns: dict[str, list[tuple[int, int, int]]] = {}
    running: dict[int, tuple[int, str | None]] = {}
    for row in run.events_of(number).rows():
        time = row["time_ns"]
        if row["event"] != "switch":
            continue
        before = running.get(row["cpu"])
        if before is not None and before[1] is not None and time > first and before[0] < last:
            turn = (row["cpu"], max(before[0], first), min(time, last))
            turns.setdefault(before[1], []).append(turn)
        running[row["cpu"]] = (time, row["name"])
        if time > last and all(since >= last for since, _ in running.values()):
            break
    for cpu, (since, name) in running.items():
        if name is not None and since < last:
            turns.setdefault(name, []).append((cpu, max(since, first), last))
    for number_of_task, (name, all_turns) in enumerate(turns.items()):
        # The ten colors of the cycle; those that follow are told apart by a hatch.
        color, hatch = f"C{number_of_task % 10}", ("", "//", "..", "xx")[number_of_task // 10 % 4]
        label: str | None = name
        for cpu in sorted({turn[0] for turn in all_turns}):
            spans = [(b / _MS, (e - b) / _MS) for at, b, e in all_turns if at == cpu]
            ax.broken_barh(
                spans, (cpu - 0.4, 0.8), facecolors=color, edgecolor="white", hatch=hatch,
                linewidth=0.3, label=label,
            )
            label = None
    ax.set_xlim(first / _MS, last / _MS)
    ax.set_xlabel("time (ms)")
    ax.set_ylabel("CPU")
    ax.set_title(f"{run.ends[number].policy} under {run.workload}")
    if len(turns) <= 20:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return ax
