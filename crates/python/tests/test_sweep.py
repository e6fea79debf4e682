"""Sweeps on executors: the same bytes as the command line, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import runslice
from conftest import Cli
from runslice import _engines, _sweep

PLAN = """
policy   = ["fifo", "mlfq"]
workload = ["desk", "pair.toml"]
cpus     = [2]
seeds    = 3
duration = "100ms"

[knobs.mlfq]
queues = [4, 8]
"""

LOAD = """
[workload]
name = "pair"
stop = "duration:50ms"

[machine]
profile = "own.profile.toml"

[task.hog]
do = "loop(inf)[ run(10ms) ]"

[task.ui]
do = "loop(inf)[ sleep(exp(5ms)), run(1ms) ]"
"""


@pytest.fixture
def plan(cli: Cli, tmp_path: Path) -> Path:
    """A plan of 18 runs in 6 cells, one of whose workloads has a profile of its own."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "pair.toml").write_text(LOAD)
    shipped = Path(__file__).resolve().parents[3] / "profiles/default-v0.toml"
    own = shipped.read_text().replace('"default-v0"', '"own"')
    (tmp_path / "own.profile.toml").write_text(own)
    return tmp_path / "plan.toml"


def kept(folder: Path) -> dict[str, bytes]:
    """Every file of results with what is in it."""
    files = [*(folder / "runs").iterdir(), folder / "results.json"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture
def expected(cli: Cli, plan: Path) -> dict[str, bytes]:
    cli(["sweep", "plan.toml", "-d", "theirs"])
    return kept(plan.parent / "theirs")


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, get_context("forkserver"))


def test_threads_and_processes_give_the_bytes_of_the_command_line(
    plan: Path, expected: dict[str, bytes]
) -> None:
    for engine in ("threads", "processes", ThreadPoolExecutor(2), processes):
        name = engine if isinstance(engine, str) else type(engine).__name__
        done = runslice.sweep(plan, engine, folder=plan.parent / name, workers=2)
        assert kept(done.folder) == expected
        assert (done.progress.done, done.progress.had, len(done.plan)) == (18, 0, 18)


def test_either_goes_on_where_the_other_stopped(
    cli: Cli, plan: Path, expected: dict[str, bytes]
) -> None:
    folder = plan.with_suffix(".results")
    runslice.sweep(plan, shard="1/3")
    assert len(list((folder / "runs").iterdir())) == 6
    done = cli(["sweep", "plan.toml", "--shard", "2/3"])
    assert b"part 2 of 3: 6 of 18 runs" in done.stderr
    seen = []
    done = runslice.sweep(plan, progress=lambda it: seen.append((it.had, it.done)))
    assert seen[-1] == (12, 18) and kept(folder) == expected
    said = cli(["sweep", "plan.toml"]).stderr
    assert b"18 of 18 runs are there already" in said


def test_requests_are_a_plan(tmp_path: Path) -> None:
    load = runslice.Workload.build(
        "pair", {"hog": "loop(inf)[ run(10ms) ]"}, stop="duration:50ms", machine={"cpus": 1}
    )
    policy = runslice.Policy.from_bytes(runslice.Policy("fifo").object, "own.bpf.o")
    requests = [
        runslice.Request([policy, "mlfq:queues=4"], load, runs=2),
        runslice.Request("o1", "desk", duration="50ms", cpus=2, scale={"hogs": 1}),
    ]
    done = runslice.sweep(requests, processes, folder=tmp_path / "a")
    assert (len(done.plan), done.plan.cells) == (5, 3)
    again = runslice.sweep(requests, folder=tmp_path / "b")
    assert kept(done.folder) == kept(again.folder) and done.plan.id == again.plan.id
    runs = json.loads((done.folder / "results.json").read_text())["runs"]
    assert [run["policy"] for run in runs] == ["own", "own", "mlfq:queues=4", "mlfq:queues=4", "o1"]
    with pytest.raises(runslice.UsageError, match="give a folder"):
        runslice.sweep(requests)


def test_a_recording_stays_in_its_process(cli: Cli, tmp_path: Path) -> None:
    cli(["sim", "eevdf", "-w", "desk", "--duration", "100ms", "--events", "e.jsonl"])
    requests = [runslice.Request(["fifo", "o1"], runslice.Workload.from_recording("e.jsonl"))]
    told = r"fifo under e.jsonl has a recording, [^\n]*\n  use threads"
    with pytest.raises(runslice.UsageError, match=told):
        runslice.sweep(requests, processes, folder=tmp_path / "a")
    assert runslice.sweep(requests, folder=tmp_path / "a").progress.done == 2


def test_metrics_are_parquet_files_by_plan(plan: Path, tmp_path: Path) -> None:
    done = runslice.sweep(plan)
    assert done.parquet is not None and done.parquet.name == f"plan={done.plan.id}"
    rows = pyarrow.parquet.read_table(done.folder / "metrics").to_pylist()
    assert {row["plan"] for row in rows} == {done.plan.id}
    runs = json.loads((done.folder / "results.json").read_text())["runs"]
    waits = {row["run"]: row["value"] for row in rows if row["metric"] == "all.wakeup_ns_p99"}
    assert waits == {at: run["report"]["all"]["wakeup_ns_p99"] for at, run in enumerate(runs)}
    bytes_of = {file.name: file.read_bytes() for file in done.parquet.iterdir()}
    other = runslice.sweep(plan, processes, folder=tmp_path / "other")
    assert other.parquet is not None
    assert {file.name: file.read_bytes() for file in other.parquet.iterdir()} == bytes_of


class Losing(Executor):
    """Loses every third task, and gives every fifth result twice: what no engine may do to us."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.count = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.count += 1
        if self.count % 3 == 0:
            future: Future[Any] = Future()
            future.set_exception(OSError("the node is gone"))
            return future
        if self.count % 5 == 0:
            self.pool.submit(fn, *args, **kwargs)
        return self.pool.submit(fn, *args, **kwargs)


def test_lost_tasks_are_made_again(plan: Path, expected: dict[str, bytes]) -> None:
    done = runslice.sweep(plan, Losing(), folder=plan.parent / "ours", workers=1, batch_s=0)
    assert done.progress.lost > 0 and kept(done.folder) == expected


def test_a_worker_that_is_killed_changes_no_byte(plan: Path, expected: dict[str, bytes]) -> None:
    pools: list[ProcessPoolExecutor] = []

    def make() -> ProcessPoolExecutor:
        pools.append(processes())
        return pools[-1]

    killed = 0

    def kill(progress: runslice.Progress) -> None:
        nonlocal killed
        workers = [worker for worker in pools[-1]._processes.values() if worker.is_alive()]
        if killed < 3 and progress.done > 4 * killed and workers:
            workers[0].kill()
            killed += 1

    folder = plan.parent / "ours"
    done = runslice.sweep(plan, make, folder=folder, workers=2, batch_s=0, progress=kill)
    assert killed == 3 and len(pools) > 1 and kept(done.folder) == expected


def test_workers_that_are_killed_when_all_is_done_do_not_keep_the_sweep(tmp_path: Path) -> None:
    # Each time another one is killed: of the two that wait, one has the lock of their queue.
    script = tmp_path / "sweeps.py"
    script.write_text(
        """
import multiprocessing, os, signal, time
from concurrent.futures import ProcessPoolExecutor
import runslice

def main():
    for at in range(4):
        pools, told = [], []
        def make():
            pools.append(ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")))
            return pools[-1]
        def kill(progress):
            if progress.done == progress.total:
                told.append(progress)
            if len(told) == 2:
                # The last word before the end: no task is left, and both wait for one.
                time.sleep(0.2)
                os.kill(list(pools[-1]._processes)[at % 2], signal.SIGKILL)
        plan = [runslice.Request("fifo", "desk", runs=4, duration="10ms")]
        runslice.sweep(plan, make, folder=f"kept{at}", workers=2, batch_s=0, progress=kill)
        assert len(told) == 2

if __name__ == "__main__":
    main()
"""
    )
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=120)


def test_an_executor_that_cannot_be_replaced_ends_the_sweep_and_keeps_what_is_done(
    plan: Path, expected: dict[str, bytes]
) -> None:
    pool = processes()

    def kill(progress: runslice.Progress) -> None:
        if progress.done > 2:
            # The first that dies may take the other with it: the pool ends what is left.
            for worker in list(pool._processes.values()):
                worker.kill()

    folder = plan.parent / "ours"
    with pytest.raises(runslice.Error, match="the executor is broken .* give a function"):
        runslice.sweep(plan, pool, folder=folder, workers=2, batch_s=0, progress=kill)
    assert 0 < len(list((folder / "runs").iterdir())) < 18
    runslice.sweep(plan, folder=folder)
    assert kept(folder) == expected


def test_a_sweep_that_is_cancelled_keeps_what_is_done(
    plan: Path, expected: dict[str, bytes]
) -> None:
    def stop(progress: runslice.Progress) -> None:
        if progress.done > 5:
            raise KeyboardInterrupt

    folder = plan.parent / "ours"
    with pytest.raises(KeyboardInterrupt):
        runslice.sweep(plan, folder=folder, workers=1, batch_s=0, progress=stop)
    assert 5 < len(list((folder / "runs").iterdir())) < 18
    done = runslice.sweep(plan, folder=folder)
    assert done.progress.had > 5 and kept(folder) == expected


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_ctrl_c_in_a_terminal_ends_the_command_and_keeps_what_is_done(
    plan: Path, engine: str
) -> None:
    plan.write_text(PLAN.replace("seeds    = 3", "seeds    = 3000"))
    words = ["-m", "runslice", "sweep", "plan.toml", "--on", engine, "--workers", "2"]
    # A terminal sends the signal to the whole group.
    command = subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    runs = plan.with_suffix(".results") / "runs"
    while not (runs.exists() and len(list(runs.iterdir())) > 3):
        assert command.poll() is None
        time.sleep(0.05)
    os.killpg(command.pid, signal.SIGINT)
    _, said = command.communicate()
    assert command.returncode == 130 and "interrupted: the runs that are done are kept" in said
    assert "Traceback" not in said
    assert 3 < len(list(runs.glob("*.json"))) < 18_000


def test_each_part_is_shipped_once_to_a_worker(plan: Path) -> None:
    shipped: list[int] = []

    class Counting(ProcessPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            shipped.append(sum(map(len, args[0].parts.values())))
            return super().submit(fn, *args, **kwargs)

    pool = Counting(1, get_context("forkserver"))
    runslice.sweep(plan, pool, folder=plan.parent / "ours", workers=1, batch_s=0)
    pool.shutdown()
    ours = _sweep.Plan(plan)._plan
    cells = range(ours.cells)
    parts = {ours.object(cell) for cell in cells} | {ours.rest(cell) for cell in cells}
    # With two tasks under way one may be asked for while it is on its way.
    assert sum(map(len, parts)) <= sum(shipped) <= 2 * sum(map(len, parts))


def test_a_worker_of_another_version_is_refused(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _sweep._make

    def other(*args: Any) -> Any:
        return [it._replace(key="0" * 32) for it in made(*args)]

    monkeypatch.setattr(_sweep, "_make", other)
    with pytest.raises(runslice.Error, match="another version of runslice"):
        runslice.sweep(plan, folder=plan.parent / "ours")
    assert not list((plan.parent / "ours/runs").iterdir())


def test_mistakes_are_told_before_anything_runs(plan: Path) -> None:
    plan.write_text(PLAN.replace("queues = [4, 8]", "queus = [4]"))
    with pytest.raises(runslice.UsageError, match=r"plan\.toml:2:\d+.*queus"):
        runslice.sweep(plan, folder=plan.parent / "ours")
    plan.write_text(PLAN)
    with pytest.raises(runslice.UsageError, match="`3/2` is no part of a whole"):
        runslice.sweep(plan, shard="3/2")
    with pytest.raises(runslice.UsageError, match="no engine is called `rays`"):
        runslice.sweep(plan, "rays")
    with pytest.raises(runslice.Error, match="cannot read no.toml"):
        runslice.sweep("no.toml")
    trace = plan.parent / "trace.jsonl"
    runslice.simulate("fifo", "desk", duration="20ms")
    with pytest.raises(TypeError, match="no option 'budget'"):
        runslice.Request("fifo", "desk", budget=3)
    assert not trace.exists()


def test_cells_share_objects_and_a_run_takes_few_bytes(plan: Path) -> None:
    import resource

    knobs = 'policy = ["mlfq"]\nworkload = ["desk"]\nseeds = 500\nduration = "1ms"\n[knobs.mlfq]\n'
    plan.write_text(f"{knobs}base_ns = {list(range(1_000_000, 1_001_000))}\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = runslice.Plan(plan)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (len(many), many.cells) == (500_000, 1000)
    # Objects alone would be 150 MB, and runs 400 MB, in kilobytes.
    assert grown < 60_000, grown


def test_a_batch_is_about_a_second(plan: Path) -> None:
    work = _sweep._Sweeping(runslice.Plan(plan), plan.parent / "ours", (0, 1), 1.0, True)
    first = work.shipped.names(0)[0]
    work.seconds = {work.shipped.names(cell)[0]: 0.4 for cell in range(6)}
    sizes = [sum(len(seeds) for _, _, seeds in batch.cells) for batch in work.batches()]
    assert sizes == [3] * 6
    del work.seconds[first]
    sizes = [sum(len(seeds) for _, _, seeds in batch.cells) for batch in work.batches()]
    assert sizes == [1, 1, 1, 3, 3, 3, 3, 3], "of what nothing is known one run is tried"


def test_the_command_line_hands_a_sweep_over(
    cli: Cli, plan: Path, expected: dict[str, bytes]
) -> None:
    words = ["-m", "runslice", "sweep", "plan.toml", "--on", "processes", "--workers", "2"]
    done = subprocess.run([sys.executable, *words], capture_output=True, check=True)
    assert kept(plan.with_suffix(".results")) == expected
    assert b"18 of 18 runs are there already" in done.stderr
    assert done.stdout == cli(["sweep", "plan.toml", "-d", "theirs"]).stdout


def test_the_program_calls_the_package_or_says_what_to_install(
    cli: Cli, plan: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNSLICE_PYTHON", sys.executable)
    cli(["sweep", "plan.toml", "--on", "processes", "--workers", "1"])
    assert kept(plan.with_suffix(".results")) == expected
    monkeypatch.setenv("RUNSLICE_PYTHON", "no-such-python")
    for words, extra in (
        (["sweep", "plan.toml", "--on", "ray"], "ray"),
        (["tune", "mlfq", "-w", "desk", "--goal", "time"], "tune"),
    ):
        said = cli(words, status=4).stderr.decode()
        assert f"install it with [{extra}]" in said and "no-such-python" in said


def test_an_engine_that_is_not_installed_says_what_to_install(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, engine in (("ray", "ray"), ("distributed", "dask")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(runslice.UnsupportedError, match=rf"runslice\[{engine}\]"):
            runslice.sweep(plan, engine, folder=plan.parent / "ours")


@pytest.mark.long
def test_ray_gives_the_same_bytes_also_when_its_workers_are_killed(
    plan: Path, expected: dict[str, bytes]
) -> None:
    pytest.importorskip("ray")

    def once(marker: Path, work: Any, batch: Any) -> Any:
        """Ends its worker the first time."""
        import os
        import signal

        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return work(batch)

    class Dying(_engines.RayExecutor):
        count = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            self.count += 1
            if self.count % 5 == 0:
                marker = plan.parent / f"killed{self.count}"
                return super().submit(once, marker, fn, *args)
            return super().submit(fn, *args, **kwargs)

    folder = plan.parent / "ours"
    done = runslice.sweep(plan, lambda: Dying(workers=2), folder=folder, workers=2, batch_s=0)
    assert len(list(plan.parent.glob("killed*"))) > 2 and kept(done.folder) == expected


@pytest.mark.long
def test_dask_gives_the_same_bytes(plan: Path, expected: dict[str, bytes]) -> None:
    distributed = pytest.importorskip("distributed")
    done = runslice.sweep(plan, "dask", folder=plan.parent / "ours", workers=2)
    assert kept(done.folder) == expected
    with distributed.Client(n_workers=2, dashboard_address=None) as client:
        done = runslice.sweep(plan, client.get_executor(), folder=plan.parent / "own")
        assert kept(done.folder) == expected
