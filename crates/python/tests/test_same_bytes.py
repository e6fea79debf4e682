"""The package gives the bytes and the words that the command line gives for the same request."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import runslice
from conftest import PROGRAM, ROOT, Cli

SHORT = {"duration": "300ms"}

LOAD = """
[workload]
name = "pair"
stop = "duration:200ms"
scale = { hogs = 2 }

[machine]
cpus = 1

[task.hog]
count = "hogs"
do = "loop(inf)[ run(10ms) ]"

[task.ui]
do = "loop(inf)[ sleep(exp(5ms)), run(1ms) ]"
"""

SOURCE = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .name = "mine");
"""


@pytest.mark.parametrize("format", ["human", "json", "csv", "parquet", "junit", "markdown"])
@pytest.mark.parametrize("runs", [None, 3])
def test_every_format_of_a_run(cli: Cli, format: str, runs: int | None) -> None:
    run = runslice.simulate(["fifo", "mlfq:queues=4"], "desk", cpus=2, seed=7, runs=runs, **SHORT)
    words = run.command(format)
    assert words[0] == "runslice"
    assert run.write(format) == cli(words[1:]).stdout


@pytest.mark.parametrize(
    "table", ["tasks", "deadlines", "spans", "counters", "phases", "nice", "machine", "cpus"]
)
def test_every_table(cli: Cli, tmp_path: Path, table: str) -> None:
    run = runslice.simulate("mlfq", "desk", **SHORT)
    for format in ("csv", "parquet"):
        assert run.write(format, table=table) == cli(run.command(format, table=table)[1:]).stdout
    (tmp_path / "table.parquet").write_bytes(run.write("parquet", table=table))
    assert pyarrow.table(run.table(table)).equals(pyarrow.parquet.read_table("table.parquet"))


@pytest.mark.parametrize("runs", [None, 2])
@pytest.mark.parametrize("ending", ["html", "json", "csv", "parquet", "md", "xml"])
def test_a_file_of_every_ending(cli: Cli, tmp_path: Path, ending: str, runs: int | None) -> None:
    run = runslice.simulate(["fifo", "mlfq"], "desk", runs=runs, **SHORT)
    name = f"out.{ending}"
    run.save(name)
    ours = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    cli(run.command(output=name)[1:])
    assert ours == (tmp_path / name).read_bytes()


def test_every_option_of_the_machine(cli: Cli) -> None:
    run = runslice.simulate(
        "mlfq",
        "chat",
        cpus=8,
        smt=2,
        llc=4,
        node=4,
        hz=1000,
        kernel="7.2",
        profile="default-v0",
        seed=3,
        set={"queues": 3},
        scale={"rooms": 1, "msgs": 2},
        budget=10**9,
        memory=64,
    )
    assert run.write("json") == cli(run.command("json")[1:]).stdout


def test_what_is_only_in_memory_is_the_same_in_files(cli: Cli, tmp_path: Path) -> None:
    fifo = runslice.Policy("fifo")
    given = {
        "own.bpf.o": (runslice.Policy.from_bytes(fifo.object, "own.bpf.o"), fifo.object),
        "mine.bpf.c": (runslice.Policy.from_source(SOURCE, "mine.bpf.c"), SOURCE.encode()),
    }
    load = runslice.Workload.from_text(LOAD, "pair.toml")
    (tmp_path / "pair.toml").write_text(LOAD)
    for name, (policy, data) in given.items():
        (tmp_path / name).write_bytes(data)
        run = runslice.simulate(policy, load, scale={"hogs": 3}, runs=2)
        assert run.write("json") == cli(run.command("json")[1:]).stdout
        assert {row["policy"] for row in run.groups.rows()} == {name.split(".")[0]}


def test_knobs_by_name_and_by_value_are_the_same(cli: Cli) -> None:
    by_value = runslice.Policy("mlfq").set(queues=4, cumulative=True)
    assert by_value.word == "mlfq:queues=4,cumulative=1"
    one = runslice.simulate(by_value, "desk", **SHORT)
    other = runslice.simulate("mlfq:queues=4,cumulative=1", "desk", **SHORT)
    assert one.write("json") == other.write("json") == cli(one.command("json")[1:]).stdout


def test_a_comparison(cli: Cli, tmp_path: Path) -> None:
    a = runslice.simulate("fifo", "desk", runs=12, **SHORT)
    b = runslice.simulate("mlfq", "desk", runs=12, **SHORT)
    (tmp_path / "a.json").write_bytes(a.write("json"))
    (tmp_path / "b.json").write_bytes(b.write("json"))
    metrics = ["all.wakeup_ns_p99", "all.delay*p50"]
    verdict = runslice.compare(a, b, metrics=metrics, margin=5)
    for format in ("human", "json", "csv", "parquet"):
        words = verdict.command(format)
        done = cli(words[1:], status=verdict.status)
        assert verdict.write(format) == done.stdout
    assert verdict.decided and len(verdict.table) == 2
    assert runslice.compare("a.json", tmp_path / "b.json", metrics=metrics, margin=5).sentences == (
        verdict.sentences
    )


def test_one_set_of_runs_compares_its_policies(cli: Cli, tmp_path: Path) -> None:
    both = runslice.simulate(["fifo", "mlfq"], "desk", runs=14, **SHORT)
    (tmp_path / "a.json").write_bytes(both.write("json"))
    verdict = runslice.compare(both, baseline="mlfq", fail_if="slower=1")
    assert verdict.status == 5
    assert verdict.write("json") == cli(verdict.command("json")[1:], status=5).stdout


@pytest.mark.parametrize("json_", [False, True])
def test_an_explanation(cli: Cli, json_: bool) -> None:
    why = runslice.explain("fifo", "desk", task="pointer", worst=2, **SHORT)
    done = cli(why.command(json=json_)[1:], status=3 if why.found else 0)
    assert why.write(json=json_).encode() == done.stdout


def test_an_explanation_of_one_of_many_runs(cli: Cli) -> None:
    run = runslice.simulate(["fifo", "mlfq"], "desk", runs=2, **SHORT)
    why = run.explain(3, worst=1)
    assert str(run.ends[3].seed) in why.command() and "mlfq" in why.command()
    done = cli(why.command(json=True)[1:], status=3 if why.found else 0)
    assert why.write(json=True).encode() == done.stdout


def test_events_are_those_of_the_file(cli: Cli, tmp_path: Path) -> None:
    run = runslice.simulate("mlfq", "desk", **SHORT)
    for decisions in (False, True):
        words = [*run.command()[1:], "--events", "e.jsonl"]
        cli([*words, "--decisions"] if decisions else words)
        lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
        wanted = [
            (line["time_ns"], line["event"], line["cpu"], line["task"])
            for line in lines
            if "cpu" in line
        ]
        table = run.events_of(0, decisions=decisions)
        columns = table.to_arrow().select(["time_ns", "event", "cpu", "task"]).to_pydict()
        assert list(zip(*columns.values())) == wanted
    names = {row["name"] for row in run.events.rows()}
    assert {"pointer", None} <= names


def test_a_recording_is_rerun(cli: Cli, tmp_path: Path) -> None:
    cli(["sim", "eevdf", "-w", "desk", "--duration", "200ms", "--events", "e.jsonl"])
    load = runslice.Workload.from_recording("e.jsonl")
    run = runslice.simulate(["fifo", "mlfq"], load)
    words = run.command("json")
    assert "--from" in words and run.write("json") == cli(words[1:]).stdout
    with pytest.raises(runslice.UsageError, match="no parameters to --scale"):
        runslice.simulate("fifo", load, scale={"hogs": 1})
    with pytest.raises(runslice.UsageError, match="is a recording"):
        load.text  # noqa: B018


def test_a_score(cli: Cli, tmp_path: Path) -> None:
    cli(["sim", "mlfq", "-w", "desk", "--duration", "4s", "--events", "e.jsonl"])
    score = runslice.score("e.jsonl", resample_seed=2, jobs=1, hz=1000)
    for format in ("human", "json", "csv", "parquet"):
        assert score.write(format) == cli(score.command(format)[1:], status=score.status).stdout
    rows = {row["part"]: row["verdict"] for row in score.table.rows()}
    assert rows.keys() == score.parts.keys() and "wait" in rows
    document = score.json()
    assert document["recorded_under"] == "mlfq" and document["answer"] == score.answer
    words = ["sim", "fifo", "--from", "e.jsonl"]
    assert b"how far to trust this load is not known" in cli(words).stderr
    score.save("e.jsonl")
    said = cli(words).stderr
    bad = [name for name, verdict in score.parts.items() if verdict == "not_trusted"]
    assert bool(bad) == (b"do not trust this load" in said) and b"is not known" not in said
    with pytest.raises(runslice.Error, match=r"no\.jsonl"):
        runslice.score("no.jsonl")
    with pytest.raises(runslice.UsageError, match="is no version of a kernel"):
        runslice.score("e.jsonl", recorded_on="five")
    with pytest.raises(TypeError, match="no option 'seed'; there are: machine, cpus"):
        runslice.score("e.jsonl", seed=3)  # type: ignore[call-arg]


def test_a_scheduler_s_own_program(cli: Cli, tmp_path: Path) -> None:
    # The program is runslice itself, which loads a policy as published schedulers do.
    command = f"'{PROGRAM}' run fifo"
    program = runslice.Policy.from_program(command)
    given = [program, runslice.Policy("mlfq")]
    for more in ({}, {"loader_cpu": "free"}):
        run = runslice.simulate(given, "desk", **SHORT, **more)  # type: ignore[arg-type]
        words = run.command("json")
        assert words[2:5] == ["mlfq", "--scheduler", command]
        assert run.write("json") == cli(words[1:]).stdout
        assert [end.policy for end in run.ends] == ["mlfq", f"{Path(PROGRAM).name} run fifo"]
    why = run.explain(1)
    assert "--scheduler" in why.command() and not why.found
    done = runslice.sweep(
        [runslice.Request(program, "desk", runs=2, **SHORT)], folder=tmp_path / "kept"
    )
    assert done.progress.done == 2
    with pytest.raises(runslice.UsageError, match="use its own options"):
        runslice.simulate(program, "desk", set={"slice_ns": 1})
    with pytest.raises(runslice.UsageError, match="it has no knobs here"):
        program.set(slice_ns=1)
    with pytest.raises(runslice.UsageError, match="quotes closed"):
        runslice.Policy.from_program("'scx_none")
    with pytest.raises(runslice.Error, match="/nowhere/scx_none"):
        runslice.simulate(runslice.Policy.from_program("/nowhere/scx_none"), "desk", **SHORT)


def test_schedulers_below_a_policy(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "load.toml").write_text(
        '[workload]\nname = "load"\n[cgroup.app]\n'
        '[task.hog]\ncgroup = "/app"\ndo = "loop(inf)[ run(10ms) ]"\n'
    )
    source = str(ROOT / "tests/policies/sub.bpf.c")
    more: dict[str, Any] = {"kernel": "7.3", "sub": {"app@50ms": source}, **SHORT}
    run = runslice.simulate(source, "load.toml", **more)
    assert run.write("json") == cli(run.command("json")[1:]).stdout
    (end,) = run.ends
    (below,) = end.subs
    assert (below.cgroup, below.level, below.tasks, below.ejection) == ("/app", 1, 1, None)
    assert below.ran_ns > 200_000_000 and end.ejection is None
    with pytest.raises(runslice.UsageError, match="write CGROUP=POLICY"):
        runslice.simulate(source, "load.toml", kernel="7.3", sub=["app"])


def test_a_choice(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(LOAD)
    own = runslice.Policy.from_bytes(runslice.Policy("fifo").object, "own.bpf.o")
    (tmp_path / "own.bpf.o").write_bytes(own.object)
    choice = runslice.choose(
        "pair.toml",
        "mean wait of ui",
        policies=[own, "mlfq:queues=4"],
        baseline="fifo",
        runs=8,
        not_modelled=5,
        scale={"hogs": 3},
        cpus=1,
    )
    for format in ("human", "html", "json", "csv", "parquet"):
        words = [*choice.command(format)[1:], *(["-o", "x.html"] if format == "html" else [])]
        done = cli(words, status=choice.status)
        if format == "html":
            # The page names the command that made it.
            assert b"<svg" in choice.write(format) and b"<svg" in (tmp_path / "x.html").read_bytes()
        else:
            assert choice.write(format) == done.stdout
    assert choice.winner == "mlfq:queues=4" and "mlfq:queues=4" in (choice.try_it or "")
    assert choice.decided and choice.json()["answer"] == choice.answer
    assert {row["against"] for row in choice.table.rows()} >= {"own", "mlfq:queues=4"}
    assert "for pair: it is likely better" in repr(choice)
    assert choice._repr_html_().startswith("<pre>")
    by_name = runslice.choose("pair.toml", policies="own.bpf.o", runs=6, goals=["cpu of ui"])
    assert by_name.write("json") == cli(by_name.command("json")[1:], status=by_name.status).stdout
    with pytest.raises(runslice.UsageError, match="there is only eevdf to choose from"):
        runslice.choose("pair.toml", "time", policies=["eevdf"])
    with pytest.raises(runslice.UsageError, match="is no goal"):
        runslice.choose("pair.toml", "fast")


WRONG = {
    ("fifi", "desk"): {},
    ("fifo", "dsk"): {},
    ("fifo:nothing=1", "desk"): {},
    ("no/such.bpf.o", "desk"): {},
    ("fifo", "no/such.toml"): {},
    ("fifo", "desk"): {"cpus": 0},
    ("mlfq", "desk"): {"hz": 123},
    ("mlfq:queues=99", "desk"): {},
    ("o1", "desk"): {"kernel": "5.0"},
    ("staircase", "desk"): {"duration": "soon"},
    ("eevdf", "desk"): {"profile": "fast"},
    ("goodness", "desk"): {"scale": {"nobody": 1}},
    ("elsc", "desk"): {"runs": 0},
}


@pytest.mark.parametrize(("given", "machine"), WRONG.items())
def test_errors_have_the_words_and_the_kind_of_the_command_line(
    cli: Cli, given: tuple[str, str], machine: dict[str, object]
) -> None:
    policy, load = given
    with pytest.raises(runslice.Error) as caught:
        runslice.simulate(policy, load, **machine)  # type: ignore[arg-type]
    words = ["sim", policy, "--workload", load]
    for option, value in machine.items():
        text = ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value
        words += [f"--{option}", str(text)]
    kinds = {runslice.UsageError: 2, runslice.UnsupportedError: 4}
    done = cli(words, status=kinds.get(type(caught.value), 1))
    assert str(caught.value) == done.stderr.decode().removeprefix("runslice: ").rstrip()


def test_the_module_is_the_command_line(cli: Cli, tmp_path: Path) -> None:
    def both(*words: str) -> list[subprocess.CompletedProcess[bytes]]:
        ours = [sys.executable, "-m", "runslice", *words]
        done = subprocess.run(ours, capture_output=True, check=False, cwd=tmp_path)
        return [done, cli(list(words), status=done.returncode)]

    for words in [
        ("sim", "mlfq", "-w", "desk", "--duration", "100ms", "--format", "json"),
        ("list",),
        ("sim", "fifi", "-w", "desk"),
        ("--help",),
        ("nothing",),
        ("sim", "fifo"),
        ("explain", "fifo", "-w", "desk", "--worst", "1", "--duration", "100ms"),
    ]:
        ours, theirs = both(*words)
        assert (ours.stdout, ours.stderr) == (theirs.stdout, theirs.stderr), words


def test_what_takes_the_program_itself_says_so(cli: Cli) -> None:
    words = [sys.executable, "-m", "runslice", "vm", "--kernel", "6.18", "--", "true"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 4
    # Where there is no kernel to boot, that is told first.
    assert b"program runslice itself" in done.stderr or b"kernel" in done.stderr
