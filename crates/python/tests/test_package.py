"""The package's own ways: tables, policies, workloads, pictures, threads."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
import runslice

SHORT = {"duration": "300ms"}


@pytest.fixture(scope="module")
def run() -> runslice.Run:
    return runslice.simulate(["fifo", "mlfq"], "desk", cpus=2, **SHORT)


def test_a_table_is_the_same_through_every_door(run: runslice.Run) -> None:
    table = run.groups
    arrow = pyarrow.table(table)
    assert (len(table), table.columns) == (arrow.num_rows, arrow.column_names)
    frames = [polars.DataFrame(table).to_arrow(), table.to_polars().to_arrow()]
    for frame in frames:
        assert frame.to_pydict() == arrow.to_pydict()
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == table.columns
    assert frame["runs"].tolist() == arrow["runs"].to_pylist()
    assert arrow.schema.field("wakeup_ns_p99").type == pyarrow.uint64()
    assert list(table.rows()) == arrow.to_pylist()
    events = run.events_of(1, decisions=True)
    assert len(events) > len(run.events_of(1)) > 1000
    assert list(events.rows()) == pyarrow.table(events).to_pylist()


def test_rows_take_no_other_library_and_tables_say_what_does(
    run: runslice.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    table = run.tasks
    rows = list(table.rows())
    assert len(rows) == len(table) > 4 and set(rows[0]) == set(table.columns)
    shown = table._repr_html_()
    assert shown.count("<tr>") == 1 + min(len(table), 20) and str(rows[0]["task"]) in shown
    for door in ("arrow", "pandas", "polars"):
        with pytest.raises(ImportError, match=rf"pip install 'runslice\[{door}\]'"):
            getattr(table, f"to_{door}")()


def test_a_table_hands_its_memory_on_without_a_copy(run: runslice.Run) -> None:
    events = run.events_of(0)
    addresses = {
        chunk.buffers()[1].address
        for _ in range(2)
        for chunk in pyarrow.table(events)["time_ns"].chunks
    }
    assert len(addresses) == 1, "two tables have one memory"
    del events
    # The memory stays while somebody has it, and a stream is taken once.
    column = pyarrow.table(run.events_of(1))["a"]
    run._events.clear()
    assert column.validate(full=True) is None and len(column) > 1000
    stream = run.groups.__arrow_c_stream__()
    assert "arrow_array_stream" in repr(stream)


def test_a_run_says_how_it_ended(run: runslice.Run) -> None:
    ends = run.ends
    assert [end.policy for end in ends] == ["fifo", "mlfq"]
    assert {end.elapsed_ns for end in ends} == {300_000_000}
    assert {end.ejection for end in ends} == {None}
    assert run.machine["cpus"] == 2 and run.workload == "desk"
    assert "fifo, mlfq under desk, 2 runs" in repr(run)
    assert "fifo" in str(run) and run._repr_html_().startswith("<pre>")
    with pytest.raises(runslice.UsageError, match="choose one with events_of"):
        run.events  # noqa: B018
    with pytest.raises(runslice.UsageError, match="there is no run 2: give a number from 0 to 1"):
        run.events_of(2)
    with pytest.raises(runslice.UsageError, match="there are: groups, tasks"):
        run.table("nothing")


def test_goals_are_measured_in_the_words_of_choose() -> None:
    run = runslice.simulate("mlfq", "desk", goals=["p99 wait of pointer", "cpu of job"], **SHORT)
    (end,) = run.ends
    groups = {row["group"]: row for row in run.groups.rows()}
    assert end.goals[0] == groups["pointer"]["wakeup_ns_p99"]
    with pytest.raises(runslice.UsageError, match="no group `pinter`"):
        runslice.simulate("mlfq", "desk", goals=["p99 wait of pinter"], **SHORT)
    with pytest.raises(runslice.UsageError, match="is no goal"):
        runslice.simulate("mlfq", "desk", goals=["fast"], **SHORT)


def test_an_ejection_is_data_and_no_exception() -> None:
    source = """
    #include <scx/common.bpf.h>
    char _license[] SEC("license") = "GPL";
    void BPF_STRUCT_OPS(bad_enqueue, struct task_struct *p, u64 enq_flags)
    {
        scx_bpf_error("no more of this");
    }
    SCX_OPS_DEFINE(bad_ops, .enqueue = (void *)bad_enqueue, .name = "bad");
    """
    policy = runslice.Policy.from_source(source, "bad.bpf.c")
    run = runslice.simulate(policy, "desk")
    assert "no more of this" in (run.ends[0].ejection or "")
    why = run.explain()
    assert why.found and "no more of this" in str(why) and why.json()["finding"]["what"]


def test_a_source_that_does_not_compile_names_file_and_line() -> None:
    with pytest.raises(runslice.Error, match=r"mine\.bpf\.c:2:"):
        runslice.Policy.from_source("\nint f(void) { return x; }\n", "mine.bpf.c")


def test_bytes_that_are_no_policy_are_refused() -> None:
    for data in (b"", b"\x7fELF", b"runslice bundle 9\n{}", bytes(1000)):
        with pytest.raises(runslice.Error):
            runslice.simulate(runslice.Policy.from_bytes(data), "desk")


def test_a_policy_says_what_it_has() -> None:
    policy = runslice.Policy("mlfq:queues=4")
    knobs = {knob.name: knob for knob in policy.knobs}
    queues = knobs["queues"]
    assert queues.min <= queues.default <= queues.max and queues.unit and queues.doc
    assert policy.name == "mlfq:queues=4" and policy.object[:4] == b"\x7fELF"
    assert set(runslice.policies()) >= {"fifo", "mlfq"} and "desk" in runslice.workloads()


def test_a_workload_is_built_from_values() -> None:
    load = runslice.Workload.build(
        "pong",
        {
            "writer": {
                "do": ["loop(inf)[ run(exp(300us)), send(ping[self]), sleep(1ms) ]"],
                "count": "pairs",
            },
            "reader": {
                "do": "loop(inf)[ recv(ping[self]), run(100us) ]",
                "count": "pairs",
                "nice": 5,
            },
        },
        stop="duration:100ms",
        scale={"pairs": 2},
        machine={"cpus": 2},
        chan={"ping": {"kind": "pipe", "count": "pairs"}},
    )
    assert (load.name, load.parameters, load.word) == ("pong", {"pairs": 2}, "pong.toml")
    run = runslice.simulate("fifo", load, scale={"pairs": 3})
    counts = {row["group"]: row["tasks"] for row in run.groups.rows()}
    assert (counts["writer"], counts["reader"]) == (3, 3)
    with pytest.raises(runslice.Error, match=r"bad\.toml:\d+:\d+"):
        runslice.Workload.build("bad", {"a": "fly(1ms)"})
    odd = 'quote " back \\ slash\n line\t tab é'
    assert runslice.Workload.build(odd, {"a": "run(1ms)"}).name == odd


def test_what_is_no_option_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'cpu'; there are: machine, cpus, smt"):
        runslice.simulate("fifo", "desk", cpu=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="makes one run"):
        runslice.explain("fifo", "desk", runs=2)
    with pytest.raises(runslice.UsageError, match="no policy"):
        runslice.simulate([], "desk")


def test_other_threads_go_on_while_a_run_is_made() -> None:
    turns = 0
    over = threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    runslice.simulate("mlfq", "desk", runs=4, duration="2s")
    made = turns - before
    over.set()
    thread.join()
    assert made > 0


def threads() -> int:
    """Threads of ours that simulate."""
    count = 0
    for path in Path("/proc/self/task").glob("*/comm"):
        # A thread that ends between the listing and the reading has no name any more: no file, or
        # one that is open and says "no such process".
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            count += path.read_text().startswith("runslice")
    return count


def test_threads_that_end_while_they_are_counted_are_no_error() -> None:
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            thread = threading.Thread(target=time.sleep, args=(0,))
            thread.start()
            thread.join()

    churn = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in churn:
        thread.start()
    try:
        for _ in range(500):
            threads()
    finally:
        over.set()
        for thread in churn:
            thread.join()


def test_ctrl_c_ends_the_call_and_the_run() -> None:
    from runslice import _runslice

    # Where a shell starts this in the background, the signal is ignored, and Python leaves it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hours: Any = {"runs": 1000, "jobs": 1, "duration": "1000s"}
    for call in (
        lambda: runslice.simulate("mlfq", "desk", **hours),
        lambda: runslice.choose("desk", runs=10_000, jobs=1),
        lambda: _runslice.check("mlfq", "desk", ([], []), ("", 1000, None, "1000s")),
    ):
        alarm = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        alarm.start()
        with pytest.raises(KeyboardInterrupt):
            call()
        alarm.join()
        # A run that nobody waits for ends, too; else this waits for hours.
        while threads() > 0:
            time.sleep(0.01)


def test_a_process_that_was_forked_simulates_as_its_parent_does() -> None:
    want = runslice.simulate("mlfq", "desk", runs=2, duration="20ms").write("json")
    with warnings.catch_warnings():
        # From 3.12 on Python warns of forks; people fork all the same.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            same = runslice.simulate("mlfq", "desk", runs=2, duration="20ms").write("json") == want
        finally:
            os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_leave_no_garbage() -> None:
    def once(number: int) -> None:
        run = runslice.simulate("fifo", "desk", seed=number, duration="1ms", runs=2)
        assert len(list(run.groups.rows())) > 2 and len(run.events_of(0)) > 2
        run.write("json")
        with pytest.raises(runslice.UsageError):
            runslice.simulate("fifi", "desk")

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    for number in range(50):
        once(number)
    before = resident()
    for number in range(200):
        once(number)
    # What one call takes for a moment is some megabytes; one that kept a page would keep less.
    assert resident() - before < 8 << 20


simulate: Any = runslice.simulate
build: Any = runslice.Workload.build
Usage = runslice.UsageError
HOSTILE: list[tuple[Any, type[Exception], str]] = [
    (lambda: simulate(None, "desk"), TypeError, ""),
    (lambda: simulate("fifo", 3), TypeError, ""),
    (lambda: simulate([3], "desk"), TypeError, ""),
    (lambda: simulate("fi\0fo", "desk"), Usage, "no policy"),
    (lambda: simulate("f\ud800", "desk"), ValueError, "surrogates"),
    (lambda: simulate("x" * 1000, "desk"), Usage, "no policy"),
    (lambda: simulate("fifo", "no\0where"), runslice.Error, ""),
    (lambda: simulate("fifo", "desk", cpus=10**30), Usage, "cpus"),
    (lambda: simulate("fifo", "desk", cpus=-1), Usage, "--cpus"),
    (lambda: simulate("fifo", "desk", cpus=1.5), Usage, "cpus"),
    (lambda: simulate("fifo", "desk", runs=10**9), Usage, "runs"),
    (lambda: simulate("fifo", "desk", seed=2**64), Usage, "seed"),
    (lambda: simulate("fifo", "desk", seed=math.nan), Usage, "seed"),
    (lambda: simulate("fifo", "desk", duration=-1), Usage, "duration"),
    (lambda: simulate("fifo", "desk", duration=10**40), Usage, "duration"),
    (lambda: simulate("fifo", "desk", duration=5), Usage, "duration"),
    (lambda: simulate("fifo", "desk", duration=0.5), Usage, "duration"),
    (lambda: simulate("fifo", "desk", machine="book"), Usage, "textbook:arrivals=last"),
    (lambda: simulate("fifo", "desk", scale={"a=b": 1}), Usage, ""),
    (lambda: simulate("fifo", "desk", memory=0), Usage, "memory"),
    (lambda: simulate("fifo", "desk", goals=["\0"]), Usage, "no goal"),
    (lambda: runslice.Policy("fifo").set(slice_ns=math.nan), TypeError, "nan"),
    (lambda: runslice.Policy("fifo").set(slice_ns=None), TypeError, "None"),
    (lambda: runslice.Policy.from_bytes("text"), TypeError, ""),
    (lambda: runslice.Workload.from_text("\0"), runslice.Error, "workload.toml:1"),
    (lambda: runslice.Workload.from_text("[" * 100_000), runslice.Error, "workload.toml"),
    (lambda: build("x", {"a": None}), runslice.Error, ""),
    (lambda: build("x", {"a": {"do": "run(1ms)", "nice": math.nan}}), runslice.Error, "x.toml:6"),
    (lambda: build("x", {"a": {"do": "run(1ms)", "nice": object()}}), TypeError, ""),
    (lambda: runslice.compare("fifo"), runslice.Error, "fifo"),
    (lambda: runslice.compare(b"\0"), (TypeError, runslice.Error), ""),
    (lambda: runslice.explain("fifo", "desk", worst=10**9), Usage, "worst"),
    (lambda: runslice.score("/dev/null"), runslice.Error, "/dev/null"),
    (lambda: runslice.sweep([], folder="x"), Usage, "nothing to run"),
    (lambda: runslice.sweep("/dev/zero"), runslice.Error, "/dev/zero"),
    (lambda: runslice.sweep("x.toml", shard="0/0"), runslice.Error, ""),
    (lambda: runslice.Plan([3]), TypeError, "no runslice.Request"),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_makes_no_sense_is_refused_in_words(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, kind, words = HOSTILE[number]
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert words in said and len(said) < 20_000
    assert "panicked" not in said and not list(tmp_path.iterdir())


def public() -> Iterator[tuple[str, Any]]:
    """Everything that the package gives, methods and properties included."""
    for name in runslice.__all__:
        if name.startswith("_"):
            continue
        it = getattr(runslice, name)
        yield name, it
        if inspect.isclass(it):
            own = [base for base in it.__mro__ if base.__module__.startswith("runslice")]
            members = {k: v for base in reversed(own) for k, v in vars(base).items()}
            for inner, member in members.items():
                if not inner.startswith("_"):
                    yield f"{name}.{inner}", member


@pytest.mark.parametrize(("name", "it"), public())
def test_everything_says_what_it_is_and_what_it_takes(name: str, it: Any) -> None:
    it = it.fget if isinstance(it, property) else getattr(it, "__func__", it)
    if inspect.ismemberdescriptor(it):
        return
    doc = inspect.getdoc(it) or ""
    assert doc, f"{name} has no docstring"
    if not inspect.isfunction(it):
        return
    signature = inspect.signature(it)
    assert signature.return_annotation is not inspect.Signature.empty, name
    taken = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    for parameter in taken:
        assert parameter.annotation is not inspect.Parameter.empty, f"{name}({parameter.name})"
    # One that is told in the first sentence needs no list.
    if len(taken) > 1:
        missing = [p.name for p in taken if f"    {p.name}: " not in doc]
        assert not missing, f"{name} does not say what {missing} are"


def test_pictures_show_what_the_tables_say(run: runslice.Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    rows = list(run.groups.rows())
    ax = run.plot_waits()
    heights = sorted(bar.get_height() for bar in ax.patches)
    columns = ("wakeup_ns_p50", "wakeup_ns_p99", "wakeup_ns_max")
    assert heights == sorted((row[name] or 0) / 1e6 for row in rows for name in columns)
    ax = run.plot_cpus()
    total = sum(bar.get_height() for bar in ax.patches)
    assert total == pytest.approx(0.3 * len(run.cpus))
    assert len(run.plot_deadlines().patches) > 0
    ax = run.plot_timeline("100ms", "200ms", run=1)
    spans = [box for drawn in ax.collections for box in drawn.get_paths()]
    edges = [x for box in spans for x in box.vertices[:, 0]]
    assert len(spans) > 10 and min(edges) >= 100 and max(edges) <= 200
    assert len({tuple(drawn.get_facecolor()[0]) for drawn in ax.collections}) > 3


def test_a_sheet_is_that_of_the_command_line() -> None:
    sheet = runslice.lab("srtf", seed=7, questions=3)
    assert len(sheet.questions) == 3 and "[task." in sheet.load
    for answers in (False, True):
        said = subprocess.run(
            [sys.executable, "-m", *sheet.command(answers=answers)],
            check=True,
            capture_output=True,
            text=True,
        )
        assert sheet.write(answers=answers) == said.stdout
    with pytest.raises(runslice.UsageError, match="no policy"):
        runslice.lab("nobody")
    with pytest.raises(runslice.UsageError, match="questions=0"):
        runslice.lab("sjf", questions=0)


def test_a_page_has_pictures(run: runslice.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and "<svg" in text
    with pytest.raises(runslice.UsageError, match="there are: human, html"):
        run.write("docx")
    with pytest.raises(runslice.UsageError, match="--table chooses the table of --format csv"):
        run.write("json", table="tasks")
    with pytest.raises(runslice.Error, match="(?s)1 run[^s].*it takes 6"):
        runslice.compare(run)


def test_the_first_result_takes_ten_lines_in_every_document() -> None:
    root = Path(__file__).resolve().parents[3]
    for page in ("docs/python.md", "crates/python/README.md"):
        code = (root / page).read_text().split("```python\n")[1].split("```")[0]
        assert code.count("\n") <= 10, page
        # The words are the same for fewer and shorter runs.
        code = code.replace("runs=20", "runs=6").replace('"desk"', '"desk", duration="200ms"')
        exec(code, {})
