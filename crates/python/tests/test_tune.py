"""The search for knobs."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import runslice
from runslice import _tune

pytest.importorskip("optuna")

LOAD = runslice.Workload.build(
    "pair",
    {
        "hog": {"do": "loop(inf)[ run(exp(20ms)), sleep(exp(5ms)) ]", "count": 3},
        "ui": "loop(inf)[ sleep(exp(5ms)), run(200us) ]",
    },
    stop="duration:400ms",
    machine={"cpus": 1},
)

OTHER = runslice.Workload.build(
    "crowd",
    {
        "batch": {"do": "loop(inf)[ run(exp(30ms)) ]", "count": 5},
        "ui": {"do": "loop(inf)[ sleep(exp(8ms)), run(300us) ]", "count": 2},
    },
    stop="duration:400ms",
    machine={"cpus": 1},
)
"""A load that the search does not see."""


def test_it_finds_a_better_slice_and_judges_it_with_other_seeds() -> None:
    answer = runslice.tune(
        "fifo", LOAD, "mean wait of ui", unseen=[OTHER], budget=150, search_runs=6, judge_runs=12
    )
    assert answer.runs <= 150 and answer.trials[0].knobs == {"slice_ns": 20_000_000}
    assert answer.best and answer.best[0]["slice_ns"] < 20_000_000
    assert answer.judged is not None and answer.status == 0
    for judged in (answer.judged, *answer.elsewhere):
        assert judged.verdict is not None and judged.verdict.decided
        (row,) = judged.verdict.table.rows()
        assert row["ratio_high"] < 1, row
    searched = {end.seed for end in runslice.simulate("fifo", LOAD, runs=6).ends}
    seeds = {end.seed for end in answer.judged.run.ends}
    assert len(seeds) == 12 and searched.isdisjoint(seeds)
    assert [it.workload for it in answer.elsewhere] == ["crowd"]
    assert answer.elsewhere[0].run.workload == "crowd"
    assert "Under crowd, which the search did not see:" in str(answer)
    assert str(answer).splitlines()[1].startswith("best: fifo:slice_ns=")
    assert any(trial.pruned for trial in answer.trials), "nothing clearly worse was given up"
    assert "seeds that the search did not see" in str(answer)


def test_the_same_search_gives_the_same_answer_and_another_executor_the_same_values() -> None:
    settings: Any = {"budget": 24, "search_runs": 3, "judge_runs": 8, "knobs": ["slice_ns"]}
    one, other = (runslice.tune("fifo", LOAD, "mean wait of ui", **settings) for _ in range(2))
    assert one.trials == other.trials and one.best == other.best
    with ThreadPoolExecutor(1) as pool:
        there = runslice.tune("fifo", LOAD, "mean wait of ui", executor=pool, **settings)
    assert there.trials == one.trials


def test_two_goals_give_a_front() -> None:
    answer = runslice.tune(
        "fifo",
        LOAD,
        ["mean wait of ui", "mean slice of hog"],
        budget=45,
        search_runs=3,
        judge_runs=8,
        knobs=["slice_ns"],
    )
    assert answer.goals == ["mean wait of ui", "mean slice of hog"]
    assert not any(trial.pruned for trial in answer.trials), "a front is not pruned"
    whole = {tuple(trial.knobs.items()): trial.means for trial in answer.trials}
    front = [whole[tuple(knobs.items())] for knobs in answer.best]
    assert front == sorted(front, key=lambda it: it[0])
    assert [it[1] for it in front] == sorted(it[1] for it in front), "better here is worse there"


def test_a_search_where_the_defaults_are_best_says_so() -> None:
    answer = runslice.tune(
        "fifo",
        LOAD,
        "mean wait of ui",
        budget=12,
        search_runs=3,
        knobs={"slice_ns": (20_000_000, 20_000_000)},
    )
    assert answer.judged is None and answer.best == []
    assert "No setting was better than the defaults" in str(answer)


def test_what_cannot_be_judged_is_said() -> None:
    same = runslice.Workload.build(
        "same",
        {
            "hog": {"do": "loop(inf)[ run(50ms) ]", "count": 2},
            "ui": "loop(inf)[ sleep(9ms), run(1ms) ]",
        },
        stop="duration:400ms",
        machine={"cpus": 1},
    )
    answer = runslice.tune("fifo", same, "mean wait of ui", budget=30, search_runs=3)
    assert answer.best and answer.judged is not None and answer.judged.refused is not None
    assert answer.status == 6 and answer.judged.verdict is None
    assert "no spread" in answer.judged.refused
    said = str(answer)
    assert said.index(answer.judged.refused) < said.index("first in the search, not shown to be")
    assert "best:" not in said


def test_a_figure_that_no_seed_changes_is_judged_if_the_runs_differ() -> None:
    apart = runslice.Workload.build(
        "apart",
        {
            "hog": {"do": "loop(inf)[ run(50ms) ]", "count": 2, "cpus": "0"},
            "ui": {"do": "loop(inf)[ sleep(9ms), run(1ms) ]", "cpus": "0"},
            "noise": {"do": "loop(inf)[ run(exp(2ms)), sleep(exp(2ms)) ]", "cpus": "1"},
        },
        stop="duration:400ms",
        machine={"cpus": 2},
    )
    answer = runslice.tune("fifo", apart, "mean wait of ui", budget=30, search_runs=3)
    assert answer.judged is not None and answer.judged.refused is None
    assert "faster" in str(answer.judged), answer
    found = answer.judged.run.groups.rows()
    assert len({row["wakeup_ns_mean"] for row in found if row["group"] == "ui"}) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"goals": []}, "0 goals are given"),
        ({"goals": "fast"}, "is no goal"),
        ({"goals": "p99 wait of nobody"}, "no group `nobody`"),
        ({"unseen": ["desk"]}, "no group `ui`"),
        ({"budget": 3}, "too small"),
        ({"knobs": ["slice"]}, "has no knob `slice`; there are: slice_ns"),
        ({"knobs": {"slice_ns": (0, 10**18)}}, "is not in"),
    ],
)
def test_mistakes_are_usage_errors(more: dict[str, object], words: str) -> None:
    goals = more.pop("goals", "mean wait of ui")
    with pytest.raises(runslice.UsageError, match=words):
        runslice.tune("fifo", LOAD, goals, **more)  # type: ignore[arg-type]


def test_a_goal_that_no_run_has_is_an_error() -> None:
    with pytest.raises(runslice.Error, match="with its defaults has no"):
        runslice.tune(
            "fifo", LOAD, "mean wait of ui", budget=20, duration="1us", knobs=["slice_ns"]
        )


def test_the_verb_prints_the_answer() -> None:
    words = [
        "tune",
        "mlfq",
        "-w",
        "chat",
        "--goal",
        "time",
        "--budget",
        "8",
        "--search-runs",
        "2",
        "--judge-runs",
        "3",
        "--knob",
        "queues=2..8",
        "--scale",
        "rooms=1",
        "--scale",
        "msgs=2",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "runslice", *words], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("mlfq under chat, time: "), done.stderr
    bad = subprocess.run(
        [sys.executable, "-m", "runslice", "tune", "mlfq", "-w", "chat", "--goal", "fast"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 2 and bad.stderr.startswith("runslice: `fast` is no goal")


def test_a_wide_knob_is_searched_by_its_logarithm() -> None:
    asked: list[tuple[str, bool]] = []

    class Asked:
        def suggest_int(self, name: str, low: int, high: int, *, log: bool) -> int:
            asked.append((name, log))
            return low

        def suggest_categorical(self, name: str, values: list[int]) -> int:
            asked.append((name, False))
            return values[0]

    knob = runslice.Knob
    for it in (
        knob("a", 5, 1, 100, "ns", ""),
        knob("b", 5, 1, 99, "ns", ""),
        knob("c", 0, 0, 1, "bool", ""),
    ):
        _tune._suggest(Asked(), it)
    assert asked == [("a", True), ("b", False), ("c", False)]
