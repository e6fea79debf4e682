"""A fixture of pytest, which is there wherever runslice is installed::

    def test_the_pointer_moves(scheduler_keeps):
        scheduler_keeps("mine.bpf.c", "desk", "p99 wait of pointer < 20ms", machine="8cpu-2llc-smt")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

import pytest

from . import _runslice


class SchedulerKeeps(Protocol):
    """Fails the test if a policy breaks a limit under a load."""

    def __call__(
        self,
        policy: str | os.PathLike[str],
        load: str | os.PathLike[str],
        *limits: str,
        machine: str = "",
        scale: Mapping[str, int] | None = None,
        runs: int = 1,
        seed: int | None = None,
        duration: str = "",
    ) -> None: ...


@pytest.fixture
def scheduler_keeps() -> SchedulerKeeps:
    """Simulates a policy under a load. The test fails if it is ejected, lets a task starve or
    breaks a limit, with the value, the line and the command that repeats the run.

    Args of what it gives:
        policy: a built-in name, an object or a C source, with knobs behind a colon.
        load: a built-in name or a TOML file.
        limits: each a goal as of ``choose``, ``<`` or ``>``, and a value.
        machine: a topology as ktstr names it, and options of ``sim``, apart by commas:
            ``"4cpu-2llc-nosmt,hz=1000"``.
        scale: parameters of the load.
        runs: runs, which differ in their seeds.
        seed: seed of the first. Default: that of the load.
        duration: longest simulated time, such as ``"2s"``.
    """

    def keeps(
        policy: str | os.PathLike[str],
        load: str | os.PathLike[str],
        *limits: str,
        machine: str = "",
        scale: Mapping[str, int] | None = None,
        runs: int = 1,
        seed: int | None = None,
        duration: str = "",
    ) -> None:
        __tracebackhide__ = True
        what = (list(limits), list((scale or {}).items()))
        how = (machine, runs, seed, duration)
        broken = _runslice.check(os.fspath(policy), os.fspath(load), what, how)
        if broken is not None:
            pytest.fail(broken, pytrace=False)

    return keeps
