"""The package's own ways: tables, policies, workloads, pictures, threads."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

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
    with pytest.raises(TypeError, match="no option 'cpu'; there are: cpus, smt"):
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


def test_a_page_has_pictures(run: runslice.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and "<svg" in text
    with pytest.raises(runslice.UsageError, match="there are: human, html"):
        run.write("docx")
    with pytest.raises(runslice.UsageError, match="--table chooses the table of --format csv"):
        run.write("json", table="tasks")
    with pytest.raises(runslice.Error, match="(?s)1 runs.*it takes 6"):
        runslice.compare(run)


def test_the_first_result_takes_ten_lines_in_every_document() -> None:
    root = Path(__file__).resolve().parents[3]
    for page in ("docs/python.md", "crates/python/README.md"):
        code = (root / page).read_text().split("```python\n")[1].split("```")[0]
        assert code.count("\n") <= 10, page
        # The words are the same for fewer and shorter runs.
        code = code.replace("runs=20", "runs=6").replace('"desk"', '"desk", duration="200ms"')
        exec(code, {})
