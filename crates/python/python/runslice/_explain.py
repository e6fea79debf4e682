"""Why a task waited or a policy was ejected."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from . import _runslice
from ._given import PolicyLike, WorkloadLike
from ._options import OneRun
from ._run import request_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Explanation:
    """What went wrong in a run, who waits where, and which line of the policy did it."""

    __slots__ = ("_explained",)

    def __init__(self, explained: _runslice.Explained) -> None:
        self._explained = explained

    @property
    def found(self) -> bool:
        """Whether anything is wrong: an ejection, or a task that still waits at the end."""
        return self._explained.is_found

    def json(self) -> dict[str, Any]:
        """The document of ``runslice explain --json``, read. Times are in nanoseconds."""
        document: dict[str, Any] = json.loads(self._explained.write(True))
        return document

    def write(self, *, json: bool = False) -> str:
        """What ``runslice explain`` writes, or with ``--json``."""
        return self._explained.write(json)

    def command(self, *, json: bool = False) -> list[str]:
        """The words of the command line that writes the same."""
        return self._explained.command(json)

    def __str__(self) -> str:
        return self._explained.write(False)

    def __repr__(self) -> str:
        return f"<runslice.Explanation: {'a fault' if self.found else 'no fault'}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(
    policy: PolicyLike,
    workload: WorkloadLike | None = None,
    *,
    task: str | None = None,
    worst: int | None = None,
    **machine: Unpack[OneRun],
) -> Explanation:
    """Simulate a run and say what went wrong in it. It is ``runslice explain``.

    Args:
        policy: the policy.
        workload: the workload.
        task: explain the waits of this task, or of this group's tasks.
        worst: explain so many of the longest waits, 1 to 1000. Default: 1 with ``task``, else none.
        machine: see ``OneRun``; ``runs`` and limits are none of ``explain``.

    Raises:
        UsageError: a policy, workload, knob or value does not exist.
        Error: a file is bad.
    """
    for option in ("runs", "jobs", "budget", "memory"):
        if option in machine:
            raise TypeError(f"explain() has no option {option!r}: it makes one run")
    if worst is not None and not 1 <= worst <= 1000:
        raise _runslice.UsageError(f"worst={worst} is not in 1..=1000")
    return Explanation(request_of(policy, workload, machine).explain(worst, task))
