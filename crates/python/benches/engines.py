"""What engines cost: one sweep on each, with the CPU time of all processes that take part.

    python crates/python/benches/engines.py [RUNS] [MILLISECONDS] [ROUNDS] [ENGINE...]

An engine is ``threads1``, ``pair``, ``processes``, ``ray``, ``dask`` or ``killed``. ``pair`` is two
whole sweeps on one thread each that know nothing of each other: what the machine itself makes two
busy CPUs cost, by half. ``killed`` is processes of which one is killed every five seconds. The
package must be importable. It takes root, because a control group counts the CPU time.

Each round makes RUNS runs of so many simulated milliseconds on every engine, and before that two
runs, which say what the engine's start costs. It prints for each the elapsed time, the CPU time,
that of one thread divided by it (1 is no overhead), the same without both starts, the CPU time of
the start, and a hash of the results, which is the same for all; in the end the medians of the
rounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

GROUP = Path("/sys/fs/cgroup/cpuacct") / f"runslice-engines-{os.getpid()}"
"""The control group, whose ``cpuacct.usage`` also has processes that nobody has waited for."""

ENGINES = ("threads1", "pair", "processes", "ray", "dask", "killed")

PLAN = """
policy   = ["fifo", "mlfq"]
workload = ["desk"]
cpus     = [2]
seeds    = {seeds}
duration = "{ms}ms"
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


def enter() -> None:
    """Puts this process, and all that it will start, into the group."""
    (GROUP / "cgroup.procs").write_text("0")


def leave() -> None:
    """Waits for what the engine left behind, and ends what does not end by itself."""
    deadline = time.monotonic() + 20
    while left := (GROUP / "cgroup.procs").read_text().split():
        if time.monotonic() > deadline:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        time.sleep(0.05)


def measure(engine: str, plan: Path, own: Path) -> tuple[float, float, str]:
    """Elapsed and CPU seconds of a sweep, and a hash of its results."""
    folders = [own / f"{engine}{number}" for number in range(2 if engine == "pair" else 1)]
    name = "threads1" if engine == "pair" else engine
    usage = GROUP / "cpuacct.usage"
    before, began = int(usage.read_text()), time.monotonic()
    commands = [
        subprocess.Popen(
            [sys.executable, __file__, "--sweep", name, str(plan), str(folder)], preexec_fn=enter
        )
        for folder in folders
    ]
    for command in commands:
        if command.wait():
            sys.exit(f"{engine}: status {command.returncode}")
    elapsed = time.monotonic() - began
    leave()
    cpu = (int(usage.read_text()) - before) / 1e9 / len(folders)
    hashed = hashlib.sha256()
    for file in ["results.json", *sorted((folders[0] / "metrics").rglob("*.parquet"))]:
        hashed.update((folders[0] / file).read_bytes())
    for folder in folders:
        shutil.rmtree(folder)
    return elapsed, cpu, hashed.hexdigest()[:16]


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:4]]
    runs, ms, rounds = numbers + [10_000, 50, 3][len(numbers) :]
    engines = sys.argv[4:] or ENGINES
    seen: dict[str, list[tuple[float, float, float]]] = {engine: [] for engine in engines}
    GROUP.mkdir()
    with tempfile.TemporaryDirectory() as name:
        own = Path(name)
        for at in range(rounds):
            first = (0.0, 0.0)
            for engine in engines:
                (own / "two.toml").write_text(PLAN.format(seeds=1, ms=ms))
                (own / "plan.toml").write_text(PLAN.format(seeds=runs // 2, ms=ms))
                _, start, _ = measure(engine, own / "two.toml", own)
                elapsed, cpu, digest = measure(engine, own / "plan.toml", own)
                if engine == engines[0]:
                    first = (cpu, start)
                whole, work = first[0] / cpu, (first[0] - first[1]) / (cpu - start)
                seen[engine].append((1e3 * cpu / runs, whole, work))
                print(
                    f"{at} {engine:10} {elapsed:6.1f} s {cpu:6.1f} s CPU  {whole:.3f} whole  "
                    f"{work:.3f} work  {start:5.2f} s start  {digest}",
                    flush=True,
                )
    GROUP.rmdir()
    for engine, rows in seen.items():
        cost, whole, work = (statistics.median(column) for column in zip(*rows))
        print(f"{engine:10} {cost:6.2f} ms of CPU a run  {whole:.3f} whole  {work:.3f} work")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sweep"]:
        sweep(*sys.argv[2:5])
    else:
        main()
