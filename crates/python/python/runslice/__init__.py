"""Run, simulate and measure Linux CPU schedulers.

runslice runs a compiled sched_ext scheduler, a *policy*, on a simulated Linux machine: no kernel,
no root, and the same events every time::

    import runslice

    run = runslice.simulate(["fifo", "mlfq"], "desk")
    print(run)                  # which policy is best at what
    run.groups.to_pandas()      # every number, one row a group of tasks

Results have the bytes that the command line writes for the same request; ``run.command()`` is that
request. ``python -m runslice`` is the command line itself.
"""

from ._choose import Choice, choose
from ._compare import Verdict, compare
from ._evaluate import Evaluation, evaluate
from ._explain import Explanation, explain
from ._given import Knob, Policy, Workload, policies, workloads
from ._lab import Sheet, lab
from ._run import Below, End, Run, simulate
from ._runslice import VERSION as __version__
from ._runslice import Error, UnsupportedError, UsageError
from ._score import Score, score
from ._sweep import Plan, Progress, Request, Sweep, sweep
from ._table import Table
from ._tune import Answer, Judged, Trial, tune

__all__ = [
    "Answer",
    "Below",
    "Choice",
    "End",
    "Error",
    "Evaluation",
    "Explanation",
    "Judged",
    "Knob",
    "Plan",
    "Policy",
    "Progress",
    "Request",
    "Run",
    "Score",
    "Sheet",
    "Sweep",
    "Table",
    "Trial",
    "UnsupportedError",
    "UsageError",
    "Verdict",
    "Workload",
    "__version__",
    "choose",
    "compare",
    "evaluate",
    "explain",
    "lab",
    "policies",
    "score",
    "simulate",
    "sweep",
    "tune",
    "workloads",
]
