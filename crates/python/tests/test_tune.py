"""The search for knobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
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


def test_what_an_answer_says_fits_a_terminal_and_names_what_gets_worse() -> None:
    answer = runslice.tune(
        "mlfq", LOAD, "mean wait of ui", unseen=[OTHER], budget=160, search_runs=4, judge_runs=10
    )
    (best,) = answer.best
    assert len(best) < len(runslice.Policy("mlfq").knobs) / 2, "most knobs are put back"
    assert answer.put_back and not set(answer.put_back) & set(best) and answer.runs <= 160
    assert set(answer.importance) in (set(), set(best))
    for row in answer.importance.values():
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
    said = str(answer)
    assert max(map(len, said.splitlines())) <= 80, said
    assert answer.judged is not None
    for judged in (answer.judged, *answer.elsewhere):
        for row in judged.worse:
            assert row["metric"] in str(judged) and row["ratio_low"] * row["ratio_high"] > 0
            # Longer waits, or less CPU time.
            assert (row["ratio"] > 1) == row["metric"].endswith(".delay_ns_mean"), row


class Imagined(_tune._Search):
    """A search whose runs are a formula over knobs, of which 0 is the default."""

    def __init__(self, value: Callable[[dict[str, int]], float]) -> None:
        self.value, self.seeds, self.higher, self.made = value, [1, 2, 3, 4], [False], 0
        self.trials = [self.trial(0, {})]

    def trial(self, number: int, knobs: dict[str, int]) -> _tune.Trial:
        return _tune.Trial(number, knobs, [it for it in self.each(knobs, None, None)])

    def changed(self, trial: _tune.Trial) -> list[str]:
        return [name for name, value in trial.knobs.items() if value]

    def each(self, knobs: Any, executor: Any, most: int | None) -> Any:
        return ([self.value(knobs) + seed] for seed in self.seeds[:most])


ALL = {name: 1 for name in "abcdefghijklmnopqr"}


@pytest.mark.parametrize(
    ("value", "room", "want"),
    [
        (lambda knobs: 100 - 50 * ("k" in knobs), 200, "k"),
        # Neither is worth anything without the other.
        (lambda knobs: 100 - 50 * ("b" in knobs and "p" in knobs), 200, "bp"),
        (lambda knobs: 100 - 30 * ("b" in knobs) - 20 * ("p" in knobs) - ("c" in knobs), 200, "bp"),
        # Few runs: halves.
        (lambda knobs: 100 - 50 * ("k" in knobs), 20, "k"),
        (lambda knobs: 100 - 50 * ("b" in knobs and "p" in knobs), 20, "".join(ALL)),
        # Nothing is known of what was not run.
        (lambda knobs: 100 - 50 * ("k" in knobs), 3, "".join(ALL)),
        # Most of what one knob would lose another one has.
        (lambda knobs: 100 - 50 * bool({"d", "m"} & set(knobs)), 300, "d"),
    ],
)
def test_knobs_that_do_not_matter_are_put_back(
    value: Callable[[dict[str, int]], float], room: int, want: str
) -> None:
    search = Imagined(value)
    runs = _tune._Room(room, None)
    kept = search.needed(search.trial(1, ALL), runs)
    assert "".join(sorted(kept)) == want
    assert search.made == room - runs.runs and runs.runs >= 0


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
    said = " ".join(str(answer).split())
    refused = " ".join(answer.judged.refused.split())
    title = "First in the search, and not shown to be better: best:"
    assert said.index(refused) < said.index(title)


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
    assert "better" in str(answer.judged), answer
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
