"""Many runs, on whatever has processors: threads, processes, Ray, Dask, any executor."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Union

if TYPE_CHECKING:
    from typing_extensions import Unpack

from . import _runslice
from ._given import PolicyLike, WorkloadLike
from ._options import Runs
from ._run import request_of

BATCH_S = 1.0
"""Seconds of work of one task, about: an engine's overhead of milliseconds is then small."""
PART_RUNS = 1000
"""Runs of one Parquet file."""
DOCUMENT_RUNS = 100_000
"""Most runs that also become one JSON document."""
LOST_MAX = 100
"""Tasks that may be lost one after the other, and none be done, before the sweep gives up."""


class Request:
    """One request of a plan: policies under a workload, as ``simulate`` takes them.

    Args:
        policy: a policy, or several.
        workload: the workload.
        machine: see ``Runs``. ``runs=20`` makes twenty runs of each policy.

    Raises:
        UsageError: there is no such policy.
        Error: a policy's file cannot be read or compiled.
    """

    __slots__ = ("_request",)

    def __init__(
        self,
        policy: PolicyLike | Sequence[PolicyLike],
        workload: WorkloadLike | None = None,
        **machine: Unpack[Runs],
    ) -> None:
        for option in ("jobs", "budget", "memory"):
            if option in machine:
                raise TypeError(f"a request of a plan has no option {option!r}")
        self._request = request_of(policy, workload, machine)


class Plan:
    """The runs that a sweep's file (docs/sweep.md) or a list of requests asks for.

    A plan has *cells*: a policy under a workload on a machine. A run is a cell with a seed; a plan
    keeps eight bytes for each.

    Args:
        plan: the path of the file, or requests.

    Raises:
        UsageError: a policy, workload or knob does not exist.
        Error: the file or a request is wrong; the message says where.
    """

    __slots__ = ("_folder", "_plan")

    def __init__(self, plan: PlanLike) -> None:
        self._folder: str | None = None
        if isinstance(plan, Plan):
            self._plan: _runslice.Plan = plan._plan
            self._folder = plan._folder
        elif isinstance(plan, (str, os.PathLike)):
            self._plan = _runslice.Plan.read(os.fspath(plan))
            self._folder = str(Path(plan).with_suffix(".results"))
        else:
            requests = list(plan)
            for request in requests:
                if not isinstance(request, Request):
                    raise TypeError(f"{request!r} in the plan is no runslice.Request")
            if not requests:
                raise _runslice.UsageError("there is nothing to run: give one or more requests")
            self._plan = _runslice.Plan.of([request._request for request in requests])

    @property
    def id(self) -> str:
        """A name of its runs, 32 hexadecimal digits: the same runs have the same one everywhere."""
        return self._plan.id()

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self._plan.cells

    def __len__(self) -> int:
        return self._plan.runs

    def __repr__(self) -> str:
        return f"<runslice.Plan: {len(self)} runs in {self.cells} cells>"


PlanLike: TypeAlias = Union[str, "os.PathLike[str]", Sequence[Request], Plan]
"""A plan, or what one is made of."""


@dataclass
class Progress:
    """How far a sweep is.

    Attributes:
        total: runs of the sweep, or of its part.
        done: runs whose results are kept, those that were there before included.
        had: runs that were there before.
        lost: tasks whose worker was lost; they are made again.
        seconds: time since the sweep began.
    """

    total: int
    done: int = 0
    had: int = 0
    lost: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Sweep:
    """What came of ``sweep``.

    Attributes:
        plan: the plan.
        folder: where the results are; ``runslice compare`` and ``runslice sweep`` read it.
        parquet: folder of the Parquet files, ``plan=ID`` below ``metrics`` in ``folder``, in which
            each row is one metric of one run; ``None`` for a part of a sweep.
        progress: how it ended.
    """

    plan: Plan
    folder: Path
    parquet: Path | None
    progress: Progress


# What a worker does. It knows no plan: it gets cells by hash, and keeps those that it has seen.


class _Batch(NamedTuple):
    """A task: cells by the hashes of their rest and object, each with the seeds to run."""

    cells: list[tuple[str, str, list[int]]]
    parts: dict[str, bytes]


class _Made(NamedTuple):
    """One run: cell, seed, key, the line that is kept, seconds."""

    cell: str
    seed: int
    key: str
    line: str
    seconds: float


class _Lacking(NamedTuple):
    """Hashes of what the worker has not seen yet."""

    hashes: list[str]


_SEEN_MAX = 256
_parts: dict[str, bytes] = {}
_cells: dict[tuple[str, str], _runslice.Cell] = {}
_lock = threading.Lock()


def _work(batch: _Batch) -> list[_Made] | _Lacking:
    """Makes the runs of a task, or says what it needs for that."""
    with _lock:
        _parts.update(batch.parts)
        lacking = {
            part
            for rest, code, _ in batch.cells
            if (rest, code) not in _cells
            for part in (rest, code)
            if part not in _parts
        }
        if lacking:
            return _Lacking(sorted(lacking))
        for rest, code, _ in batch.cells:
            if (rest, code) not in _cells:
                _cells[rest, code] = _runslice.Cell.of(_parts[rest], _parts[code])
        cells = [_cells[rest, code] for rest, code, _ in batch.cells]
        # The oldest are forgotten; whoever needs them again asks again.
        while len(_cells) > _SEEN_MAX:
            del _cells[next(iter(_cells))]
        while len(_parts) > 2 * _SEEN_MAX:
            del _parts[next(iter(_parts))]
    return _make(cells, batch.cells)


def _make(cells: list[_runslice.Cell], wanted: list[tuple[str, str, list[int]]]) -> list[_Made]:
    """Makes the runs of cells that are at hand."""
    made = []
    for cell, (rest, _, seeds) in zip(cells, wanted):
        for seed in seeds:
            begin = time.perf_counter()
            key, line = cell.make(seed)
            made.append(_Made(rest, seed, key, line, time.perf_counter() - begin))
    return made


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@dataclass
class _Shipped:
    """The parts of a plan's cells, by hash."""

    plan: _runslice.Plan
    is_local: bool
    """Workers are threads of this process, and take cells as they are."""
    of_cell: dict[int, tuple[str, str]] = field(default_factory=dict)
    where: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def names(self, cell: int) -> tuple[str, str]:
        """The hashes of a cell's rest and object."""
        if cell not in self.of_cell:
            if self.is_local:
                rest, code = f"cell {cell}", "in this process"
            else:
                rest, code = _hash(self.plan.rest(cell)), _hash(self.plan.object(cell))
            self.of_cell[cell] = (rest, code)
            self.where.setdefault(rest, (cell, False))
            self.where.setdefault(code, (cell, True))
        return self.of_cell[cell]

    def cell(self, rest: str) -> _runslice.Cell:
        """The cell with this hash of its rest, for a thread."""
        cell = self.plan.cell(self.where[rest][0])
        assert cell is not None
        return cell

    def part(self, name: str) -> bytes:
        """What has this hash."""
        cell, is_object = self.where[name]
        return self.plan.object(cell) if is_object else self.plan.rest(cell)


Engine: TypeAlias = str | Executor | Callable[[], Executor] | None
"""Where work is done: an executor, what makes one, ``"threads"``, ``"processes"``, ``"ray"`` or
``"dask"``; ``None`` stands for threads."""


class _Pool:
    """The executor, and how to get another one when it is broken."""

    def __init__(self, engine: Engine, workers: int | None) -> None:
        from . import _engines

        self.make: Callable[[], Executor] | None
        if engine is None or isinstance(engine, str):
            self.make = _engines.maker(engine or "threads", workers)
        elif isinstance(engine, Executor):
            self.make = None
        else:
            self.make = engine
        self.executor = engine if isinstance(engine, Executor) else self._new()
        self.workers = workers or _engines.width(self.executor)

    def _new(self) -> Executor:
        assert self.make is not None
        return self.make()

    def renew(self, error: BaseException) -> None:
        """Another executor in the place of a broken one."""
        if self.make is None:
            raise _runslice.Error(
                f"the executor is broken ({type(error).__name__}: {error}); what was done is kept. "
                "Start the sweep again, or give a function that makes executors instead of one"
            ) from error
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._new()

    def close(self, *, at_once: bool) -> None:
        if self.make is None:
            return
        if not at_once and isinstance(self.executor, ProcessPoolExecutor):
            # Nothing is left to do. A worker that is killed while it waits for work dies with the
            # lock of the queue, so that the others would never hear that they are to end.
            for worker in list(self.executor._processes.values()):
                worker.terminate()
        self.executor.shutdown(wait=not at_once, cancel_futures=at_once)


def sweep(
    plan: PlanLike,
    executor: Engine = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    shard: str | None = None,
    parquet: bool = True,
    batch_s: float = BATCH_S,
    progress: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Make every run of a plan that is not there yet, and keep its results.

    Results are kept by what they depend on, in the folder that ``runslice sweep`` uses, so either
    goes on where the other stopped. Workers get work of about ``batch_s`` seconds, and each policy
    and workload once. A worker that is lost, or a result that comes twice, changes no byte. Ctrl-C,
    or an exception of ``progress``, ends the sweep; what is done is kept,
    and Ctrl-C says how much.

    Args:
        plan: the path of a sweep's file, or requests.
        executor: where the runs are made: any ``concurrent.futures.Executor``, a function that
            makes one (called again when an executor is broken), or ``"threads"``, ``"processes"``,
            ``"ray"``, ``"dask"``. Default: threads, one for each CPU.
        folder: folder of the results. Default: the file's name, ending in ``.results``.
        workers: number of workers. Default: what the executor says, or one for each CPU.
        shard: make only one part of the runs: ``"2/8"`` is the second of eight. ``runslice sweep
            --merge`` joins parts.
        parquet: also write Parquet files: ``folder/metrics/plan=ID/part-*.parquet``.
        batch_s: seconds of work of one task.
        progress: is called after each task.

    Raises:
        UsageError: something in the plan does not exist, or ``shard`` is no part.
        Error: a run cannot be made, the executor is broken for good, or a worker has another
            version of runslice.
    """
    plan = Plan(plan)
    target = folder if folder is not None else plan._folder
    if target is None:
        raise _runslice.UsageError("a plan of requests has no name: give a folder")
    part = _shard(shard)
    plan._plan.try_policies()
    pool = _Pool(executor, workers)
    is_local = isinstance(pool.executor, ThreadPoolExecutor)
    work = _Sweeping(plan, Path(target), part, batch_s, is_local)
    work.tell = progress
    try:
        work.run(pool)
    except BaseException as error:
        pool.close(at_once=True)
        if isinstance(error, KeyboardInterrupt):
            done, total = work.progress.done, work.progress.total
            kept = f"{done} of {total} runs are kept in {target}; the same call goes on from there"
            print(f"runslice: {kept}", file=sys.stderr)
        raise
    pool.close(at_once=False)
    metrics = None
    if shard is None:
        if len(plan) <= DOCUMENT_RUNS:
            plan._plan.finish(work.store)
        if parquet:
            metrics = _parquet(plan, work.store, Path(target))
    return Sweep(plan, Path(target), metrics, work.progress)


def _shard(text: str | None) -> tuple[int, int]:
    """First run and step."""
    if text is None:
        return 0, 1
    index, _, count = text.partition("/")
    if index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count):
        return int(index) - 1, int(count)
    raise _runslice.UsageError(f"`{text}` is no part of a whole, such as 2/8")


class _Sweeping:
    """A sweep under way."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        part: tuple[int, int],
        batch_s: float,
        is_local: bool,
    ) -> None:
        self.plan = plan._plan
        self.store = _runslice.Store.open(folder)
        self.shipped = _Shipped(self.plan, is_local)
        self.indexes = range(part[0], self.plan.runs, part[1])
        self.batch_s = batch_s
        self.progress = Progress(total=len(self.indexes))
        self.tell: Callable[[Progress], None] | None = None
        self.begin = time.monotonic()
        runs = folder / "runs"
        self.has_old = next(os.scandir(runs), None) is not None
        self.seconds: dict[str, float] = {}
        self.checked: set[str] = set()
        self.lost_in_a_row = 0

    def missing(self) -> Iterator[tuple[int, int]]:
        """Cell and seed of every run that is not there."""
        for index in self.indexes:
            if self.has_old and self.store.get(self.plan.key(index)) is not None:
                self.progress.had += 1
                self.progress.done += 1
                continue
            run = self.plan.run(index)
            assert run is not None
            yield run

    def batches(self) -> Iterator[_Batch]:
        """Tasks, made when they are needed: what is known of a cell's time grows meanwhile."""
        cells: list[tuple[str, str, list[int]]] = []
        expected = 0.0
        for cell, seed in self.missing():
            rest, code = self.shipped.names(cell)
            if not cells or cells[-1][0] != rest or cells[-1][1] != code:
                cells.append((rest, code, []))
            cells[-1][2].append(seed)
            # A run of which nothing is known is a task of its own.
            expected += self.seconds.get(rest, self.batch_s)
            if expected >= self.batch_s:
                yield _Batch(cells, {})
                cells, expected = [], 0.0
        if cells:
            yield _Batch(cells, {})

    def run(self, pool: _Pool) -> None:
        batches = self.batches()
        again: deque[_Batch] = deque()
        flying: dict[Future[list[_Made] | _Lacking], _Batch] = {}
        # One for each worker, and one that waits for it.
        most = 2 * pool.workers
        while True:
            while len(flying) < most:
                batch = again.popleft() if again else next(batches, None)
                if batch is None:
                    break
                try:
                    flying[self.submit(pool.executor, batch)] = batch
                except BrokenExecutor as error:
                    again.append(batch)
                    self.lost(pool, error)
                    break
            if not flying:
                if again:
                    continue
                break
            ready, _ = wait(flying, timeout=1.0, return_when=FIRST_COMPLETED)
            broken: BaseException | None = None
            for future in ready:
                batch = flying.pop(future)
                failure = None if future.cancelled() else future.exception()
                if isinstance(failure, _runslice.Error):
                    raise failure
                if failure is not None or future.cancelled():
                    again.append(batch)
                    if isinstance(failure, BrokenExecutor):
                        broken = failure
                    else:
                        self.lost(None, failure)
                    continue
                self.take(batch, future.result(), again)
            if broken is not None:
                again.extend(flying.values())
                flying.clear()
                self.lost(pool, broken)
            self.report()
        self.report()

    def submit(self, executor: Executor, batch: _Batch) -> Future[list[_Made] | _Lacking]:
        """Gives a task to a worker."""
        if self.shipped.is_local:
            cells = [self.shipped.cell(rest) for rest, _, _ in batch.cells]
            return executor.submit(_make, cells, batch.cells)
        return executor.submit(_work, batch)

    def lost(self, pool: _Pool | None, error: BaseException | None) -> None:
        """A task has no result."""
        self.progress.lost += 1
        self.lost_in_a_row += 1
        if self.lost_in_a_row > LOST_MAX:
            raise _runslice.Error(
                f"{LOST_MAX} tasks were lost and none was done, the last by {error!r}; what was "
                "done before is kept"
            ) from error
        if pool is not None and error is not None:
            pool.renew(error)

    def take(self, batch: _Batch, came: list[_Made] | _Lacking, again: deque[_Batch]) -> None:
        """Keeps what a task gave."""
        if isinstance(came, _Lacking):
            parts = {name: self.shipped.part(name) for name in came.hashes}
            again.appendleft(_Batch(batch.cells, parts))
            return
        self.lost_in_a_row = 0
        for made in came:
            self.check(made)
            self.store.put(made.key, made.line)
            self.progress.done += 1
            known = self.seconds.get(made.cell, made.seconds)
            # Times of one machine differ; the later ones count more.
            self.seconds[made.cell] = 0.8 * known + 0.2 * made.seconds

    def check(self, made: _Made) -> None:
        """Refuses the work of another version, by the first run of each cell."""
        if made.cell in self.checked:
            return
        cell, _ = self.shipped.where[made.cell]
        expected = self.plan.key_of(cell, made.seed)
        if expected != made.key:
            raise _runslice.Error(
                f"a worker has made run {made.key} where {expected} was asked for: it has another "
                "version of runslice; install the same one everywhere"
            )
        self.checked.add(made.cell)

    def report(self) -> None:
        self.progress.seconds = time.monotonic() - self.begin
        if self.tell is not None:
            self.tell(self.progress)


def _parquet(plan: Plan, store: _runslice.Store, folder: Path) -> Path:
    """Writes what is not there of the Parquet files."""
    target = folder / "metrics" / f"plan={plan.id}"
    target.mkdir(parents=True, exist_ok=True)

    def write(begin: int) -> None:
        path = target / f"part-{begin // PART_RUNS:06}.parquet"
        if path.exists():
            return
        new = path.with_suffix(f".{os.getpid()}-{begin}.new")
        new.write_bytes(plan._plan.part(store, begin, begin + PART_RUNS))
        new.replace(path)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(write, range(0, len(plan), PART_RUNS)):
            pass
    return target
