"""What engines cost: one sweep on each, with the CPU time of all processes that take part.

    python crates/python/benches/engines.py [RUNS] [ENGINE...]

An engine is ``threads1``, ``processes``, ``ray``, ``dask`` or ``killed``: processes of which one is
killed every five seconds. The package must be importable. It prints for each the elapsed time, the
CPU time of all processes that it took, that of the first engine divided by it (1 is no overhead),
and a hash of the results, which is the same for all.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""Linux, include/uapi/linux/prctl.h: orphaned descendants become children, and are waited for."""

ENGINES = ("threads1", "processes", "ray", "dask", "killed")

PLAN = """
policy   = ["fifo", "mlfq"]
workload = ["desk"]
cpus     = [2]
seeds    = {seeds}
duration = "50ms"
"""


def sweep(engine: str, plan: str, folder: str) -> None:
    """One sweep, in a process of its own."""
    import runslice

    began = time.monotonic()
    pools: list[ProcessPoolExecutor] = []
    kills = 0

    def pool() -> ProcessPoolExecutor:
        pools.append(ProcessPoolExecutor(2, get_context("forkserver")))
        return pools[-1]

    def kill(_: runslice.Progress) -> None:
        nonlocal kills
        if time.monotonic() - began > 5 * (kills + 1):
            for worker in list(pools[-1]._processes.values())[:1]:
                # It may just have ended by itself, with its broken pool.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
            kills += 1

    where = {"threads1": "threads", "killed": pool}.get(engine, engine)
    workers = 1 if engine == "threads1" else 2
    tell = kill if engine == "killed" else None
    done = runslice.sweep(plan, where, folder=folder, workers=workers, progress=tell)
    print(f"  {done.progress.seconds:.1f} s of runs, {done.progress.lost} lost, {kills} kills")


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reap() -> None:
    """Waits for what the engine left behind, and ends what does not end by itself."""
    deadline = time.monotonic() + 20
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            if time.monotonic() > deadline:
                listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
                for child in listed.split():
                    os.kill(int(child), signal.SIGKILL)
            time.sleep(0.05)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    engines = sys.argv[2:] or ENGINES
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    first = None
    with tempfile.TemporaryDirectory() as own:
        plan = Path(own) / "plan.toml"
        plan.write_text(PLAN.format(seeds=runs // 2))
        for engine in engines:
            folder = Path(own) / engine
            before, began = children(), time.monotonic()
            words = [sys.executable, __file__, "--sweep", engine, str(plan), str(folder)]
            subprocess.run(words, check=True)
            elapsed = time.monotonic() - began
            reap()
            cpu = children() - before
            first = first or cpu
            digest = hashlib.sha256((folder / "results.json").read_bytes()).hexdigest()[:16]
            size = sum(it.stat().st_size for it in (folder / "metrics").rglob("*.parquet"))
            print(
                f"{engine:10} {elapsed:7.1f} s  {cpu:7.1f} s CPU  {first / cpu:5.2f}  "
                f"{1e3 * cpu / runs:6.2f} ms a run  {size / runs:6.0f} B a run  {digest}",
                flush=True,
            )
            shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sweep"]:
        sweep(*sys.argv[2:5])
    else:
        main()
