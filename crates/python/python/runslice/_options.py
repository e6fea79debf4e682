"""Options of the command line, from Python's values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict

from ._given import Value, text_of

Time: TypeAlias = str | int | timedelta
"""A span of simulated time: ``"10s"``, ``"1.5ms"``, a number of nanoseconds, or a timedelta."""


class Computer(TypedDict, total=False):
    """The machine of a simulated run.

    Each key is an option of ``runslice sim``, whose help has ranges and defaults: what is left out
    is as in the workload.

    Keys:
        cpus: CPUs, 1 to 1024.
        smt: hardware threads of a core, 1 or 2.
        llc: CPUs that share a last-level cache; 0 for all of a node.
        node: CPUs of a NUMA node; 0 for all.
        hz: ticks a second: 100, 250, 300 or 1000.
        kernel: version to simulate, ``"6.12"`` or ``"6.16"`` to ``"7.3"``.
        profile: ``"ideal"``, ``"default-v0"``, or the path of a file of costs.
    """

    cpus: int
    smt: int
    llc: int
    node: int
    hz: int
    kernel: str
    profile: str


class Setting(Computer, total=False):
    """As ``Computer``, with the seed and the length of the run, the workload's parameters, and how
    schedulers' own programs run.

    Keys:
        seed: seed of every random choice, 0 to 2**64 - 1. Default: that of the workload.
        duration: longest simulated time. Default: until the workload ends.
        scale: parameters of the workload.
        loader_cpu: ``"simulated"``, or ``"free"`` if the threads of a scheduler's own program take
            no CPU time.
        loader_net: whether such a program may use the network.
        loader_dir: folder in which such a program may write. Default: it may write nowhere.
    """

    seed: int
    duration: Time
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
    """

    set: Mapping[str, Value]
    run: Sequence[str]
    run_attached: Sequence[str]
    ops: str


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


def time_of(time: Time) -> str:
    """A span as the command line takes it."""
    if isinstance(time, timedelta):
        micros = (time.days * 86_400 + time.seconds) * 1_000_000 + time.microseconds
        return f"{micros}us"
    return f"{time}ns" if isinstance(time, int) else time


def options_of(machine: Mapping[str, object], keys: type = Machine) -> list[str]:
    """The words of the command line for these keys, in their order.

    Raises:
        TypeError: there is no such key.
    """
    known = keys.__annotations__
    words: list[str] = []
    for key, value in machine.items():
        if key not in known:
            raise TypeError(f"there is no option {key!r}; there are: {', '.join(known)}")
        option = f"--{key.replace('_', '-')}"
        for word in _values(key, value):
            # What begins with a dash would be taken for an option of its own.
            is_negative = bool(word) and word[0].startswith("-")
            words += [f"{option}={word[0]}"] if is_negative else [option, *word]
    return words


def _values(key: str, value: object) -> list[list[str]]:
    """What stands behind each time that the option stands."""
    if value is None or value is False:
        return []
    if value is True:
        return [[]]
    if isinstance(value, Mapping):
        return [[f"{name}={text_of(it)}"] for name, it in value.items()]
    if key in ("run", "run_attached"):
        words: Any = [value] if isinstance(value, str) else value
        return [[word] for word in words]
    if key == "duration":
        return [[time_of(value)]]  # type: ignore[arg-type]
    return [[os.fspath(value) if isinstance(value, os.PathLike) else str(value)]]
