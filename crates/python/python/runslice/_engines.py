"""Engines: what makes executors, and the verbs of the command line that need Python."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

from . import _runslice

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")

NAMES = ("threads", "processes", "ray", "dask")
"""Engines that have a name."""


class RayExecutor(Executor):
    """Ray as an executor. A task whose worker or node is lost is made again, as often as it takes.

    Args:
        address: address of a cluster, as ``ray.init`` takes it. Default: the cluster that this
            process is connected to, else a new one on this computer.
        workers: CPUs of a new cluster. Default: all.

    Raises:
        UnsupportedError: Ray is not installed.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise _runslice.UnsupportedError(needs("ray")) from error
        self._ray: Any = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            count = None if address else workers
            ray.init(address, num_cpus=count, include_dashboard=False, log_to_driver=False)
        self._remote: dict[Any, Any] = {}

    @property
    def width(self) -> int:
        """CPUs of the cluster."""
        count: int = max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        return count

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See ``concurrent.futures.Executor``."""
        if fn not in self._remote:
            self._remote[fn] = self._ray.remote(fn).options(max_retries=-1, num_cpus=1)
        future: Future[T] = self._remote[fn].remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends a cluster that this executor began."""
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()


class DaskExecutor(Executor):
    """A Dask client as an executor that owns it.

    Args:
        address: address of a scheduler. Default: a new cluster on this computer.
        workers: processes of a new cluster. Default: one for each CPU.

    Raises:
        UnsupportedError: Dask's ``distributed`` is not installed.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise _runslice.UnsupportedError(needs("dask")) from error
        if address is None:
            self._client = Client(
                n_workers=workers or cpus(), threads_per_worker=1, dashboard_address=None
            )
        else:
            self._client = Client(address)
        # A lost worker is nothing unusual; what fails for good says so itself.
        self._executor = self._client.get_executor(retries=1_000_000, pure=False)

    @property
    def width(self) -> int:
        """Threads of the cluster's workers."""
        count: int = max(sum(self._client.nthreads().values()), 1)
        return count

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See ``concurrent.futures.Executor``."""
        future: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the client, and a cluster that it began."""
        self._executor.shutdown(wait=wait)
        self._client.close()


def needs(engine: str) -> str:
    """What to do when an engine is not there."""
    return f"{engine} is not installed for this Python: pip install 'runslice[{engine}]'"


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def maker(name: str, workers: int | None, address: str | None = None) -> Callable[[], Executor]:
    """What makes executors of the engine.

    Raises:
        UsageError: there is no such engine.
    """
    if name == "threads":
        return lambda: ThreadPoolExecutor(workers or cpus())
    if name == "processes":
        # A process that was forked from one with threads may hang; a fresh one does not.
        context = get_context("forkserver")
        return lambda: ProcessPoolExecutor(workers or cpus(), context, initializer=_deaf)
    if name == "ray":
        return lambda: RayExecutor(address, workers)
    if name == "dask":
        return lambda: DaskExecutor(address, workers)
    raise _runslice.UsageError(f"no engine is called `{name}`; there are: {', '.join(NAMES)}")


def _deaf() -> None:
    """A terminal's Ctrl-C reaches every process; only the one that hands out work answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def width(executor: Executor) -> int:
    """How many tasks it does at once; the CPUs of this computer, if it does not say."""
    for name in ("width", "_max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        threads: int = max(sum(client.nthreads().values()), 1)
        return threads
    return cpus()


# Verbs of the command line.


def verb(words: list[str]) -> int | None:
    """Does what only Python can do; ``None`` if the words ask for something else."""
    if not words:
        return None
    try:
        if words[0] == "tune":
            from . import _tune

            return _tune.verb(words[1:])
        if words[0] == "sweep" and any(word.split("=")[0] == "--on" for word in words):
            return _sweep(words[1:])
    except _runslice.Error as error:
        print(f"runslice: {error}", file=sys.stderr)
        kinds = {_runslice.UsageError: 2, _runslice.UnsupportedError: 4}
        return kinds.get(type(error), 1)
    except KeyboardInterrupt:
        command = shlex.join(["runslice", *words])
        what = f"nothing is kept; `{command}` begins anew"
        if words[0] == "sweep":
            what = f"the runs that are done are kept; `{command}` goes on from there"
        print(f"runslice: interrupted: {what}", file=sys.stderr)
        return 130
    return None


def _sweep(words: list[str]) -> int:
    """``runslice sweep FILE --on ENGINE``: makes the runs, then lets the command line sum up."""
    from ._sweep import sweep

    parser = argparse.ArgumentParser("runslice sweep", add_help=False, allow_abbrev=False)
    parser.add_argument("--on", required=True, choices=NAMES)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--address")
    ours, rest = parser.parse_known_args(words)
    shared = argparse.ArgumentParser("runslice sweep", add_help=False, allow_abbrev=False)
    shared.add_argument("file")
    shared.add_argument("-d", "--folder")
    shared.add_argument("--shard")
    theirs, _ = shared.parse_known_args(rest)
    engine = maker(ours.on, ours.workers, ours.address)
    progress = _Line() if sys.stderr.isatty() else None
    sweep(
        theirs.file,
        engine,
        folder=theirs.folder,
        workers=ours.workers,
        shard=theirs.shard,
        progress=progress,
    )
    if progress is not None:
        progress.end()
    sys.stdout.flush()
    return _runslice.main(["runslice", "sweep", *rest])


class _Line:
    """Progress as one line of a terminal."""

    def __call__(self, it: Any) -> None:
        lost = f", {it.lost} tasks lost and made again" if it.lost else ""
        print(f"\r{it.done} of {it.total} runs, {it.seconds:.0f} s{lost}", end="", file=sys.stderr)

    def end(self) -> None:
        """Ends the line."""
        print(file=sys.stderr)
