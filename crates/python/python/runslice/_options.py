"""Options of a question, which have the names of the command line's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias, TypedDict

from ._given import Value, text_of

Time: TypeAlias = str | int | timedelta
"""A span of simulated time: ``"10s"``, ``"1.5ms"``, a number of nanoseconds, or a timedelta."""

Span: TypeAlias = str | timedelta
"""A length of simulated time, with its unit."""


class Computer(TypedDict, total=False):
    """The machine of a simulated run.

    Each key is an option of ``runslice sim``, whose help has ranges and defaults: what is left out
    is as in the workload.

    Keys:
        machine: ``"textbook"`` or ``"textbook:arrivals=last"``: one CPU, no costs, no ticks.
        cpus: CPUs, 1 to 1024.
        smt: hardware threads of a core, 1 or 2.
        llc: CPUs that share a last-level cache; 0 for all of a node.
        node: CPUs of a NUMA node; 0 for all.
        hz: ticks a second: 100, 250, 300 or 1000.
        kernel: version to simulate, ``"6.12"`` or ``"6.16"`` to ``"7.3"``.
        profile: ``"ideal"``, ``"default-v0"``, or the path of a file of costs.
        smt_share: what a task keeps of its speed while the other thread of its core executes:
            ``"low"``, ``"typical"``, ``"high"``, or a number of 0.1 to 1 as text.
        hardware: machine whose CPUs differ, such as ``"pixel6"``, or the path of a file.
        governor: ``"performance"``, ``"powersave"``, ``"schedutil"`` or ``"hwp"``.
    """

    machine: str
    cpus: int
    smt: int
    llc: int
    node: int
    hz: int
    kernel: str
    profile: str
    smt_share: str
    hardware: str
    governor: str


class Setting(Computer, total=False):
    """As ``Computer``, with the seed and the length of the run, the workload's parameters, and how
    schedulers' own programs run.

    Keys:
        seed: seed of every random choice, 0 to 2**64 - 1. Default: that of the workload.
        duration: longest simulated time, such as ``"5s"`` or ``timedelta(seconds=5)``. Default:
            until the workload ends.
        scale: parameters of the workload.
        loader_cpu: ``"simulated"``, or ``"free"`` if the threads of a scheduler's own program take
            no CPU time.
        loader_net: whether such a program may use the network.
        loader_dir: folder in which such a program may write. Default: it may write nowhere.
    """

    seed: int
    duration: Span
    scale: Mapping[str, int]
    loader_cpu: str
    loader_net: bool
    loader_dir: str | os.PathLike[str]


class OneRun(Setting, total=False):
    """As ``Setting``, with what happens to the policy before it runs.

    Keys:
        set: knobs or variables of every policy.
        run: programs to run before a policy is attached, with their arguments.
        run_attached: the same right after it is attached.
        ops: table of callbacks to attach.
        sub: schedulers below every policy, by their cgroups: ``{"app": "below.bpf.o"}``.
    """

    set: Mapping[str, Value]
    run: Sequence[str]
    run_attached: Sequence[str]
    ops: str
    sub: Mapping[str, str] | Sequence[str]


class Runs(OneRun, total=False):
    """As ``OneRun``, of several runs.

    Keys:
        runs: number of runs of each policy, each with its own seed.
    """

    runs: int


class Machine(Runs, total=False):
    """As ``Runs``, with limits.

    Keys:
        jobs: threads for ``runs``; the number does not change the results.
        budget: most BPF instructions of each run.
        memory: most memory of each policy, MiB.
    """

    jobs: int
    budget: int
    memory: int


def span_of(span: Span) -> str:
    """A span as text. A number has no unit: the compiled half refuses it, as on a command line."""
    if isinstance(span, timedelta):
        micros = (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
        return f"{micros}us"
    return str(span)


def options_of(machine: Mapping[str, object], keys: type = Machine) -> dict[str, object]:
    """These keys for the compiled half: numbers as they are, times and settings as text.

    Raises:
        TypeError: there is no such key.
    """
    known = keys.__annotations__
    options: dict[str, object] = {}
    for key, value in machine.items():
        if key not in known:
            raise TypeError(f"there is no option {key!r}; there are: {', '.join(known)}")
        if value is None or value is False:
            continue
        if isinstance(value, Mapping):
            options[key] = [f"{name}={text_of(it)}" for name, it in value.items()]
        elif key in ("run", "run_attached", "sub"):
            options[key] = [value] if isinstance(value, str) else value
        elif key == "duration":
            options[key] = span_of(value)  # type: ignore[arg-type]
        else:
            options[key] = os.fspath(value) if isinstance(value, os.PathLike) else value
    return options
