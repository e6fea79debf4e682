"""Search for the knobs of a policy that serve a goal best."""

from __future__ import annotations

import argparse
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Unpack

from . import _runslice
from ._compare import Verdict, compare
from ._given import Knob, Policy, PolicyLike, Workload, WorkloadLike
from ._options import OneRun
from ._run import Run, request_of

SEARCH_RUNS = 8
"""Most seeds that a trial is tried with."""
JUDGE_RUNS = 20
"""Seeds that the search did not see, for the answer."""
INCONCLUSIVE = 6
"""Exit status of the command line: the runs do not decide."""
_WIDE = 100
"""A knob whose greatest value is so many times its least is searched by its logarithm."""
_KEPT = 0.9
"""Knobs that are put back to their defaults leave so much of a setting's gain."""
_FEW = 2
"""Seeds of a knob that is put back alone; then a setting that has lost half of the gain is given
up."""
_FRONT = 3
"""Most settings of an answer for two goals: the ends of the front, and its middle."""
_SPARE = 3
"""One in so many runs of the budget is kept for putting knobs back."""
_WATCHED = ["*.delay_ns_mean", "*.run_ns"]
"""What may be worse for tasks that no goal measures: longer waits, and less CPU time."""
_COLUMNS = 80
_TITLE = 26
_INDENTED: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    "}


@dataclass
class Trial:
    """Knobs that were tried.

    Attributes:
        number: from 0 in the order of the search; 0 has the defaults.
        knobs: the values.
        values: what was measured of each goal in each run, in the order of the seeds.
        pruned: whether it was given up before all seeds were run.
    """

    number: int
    knobs: dict[str, int]
    values: list[list[float]] = field(default_factory=list)
    pruned: bool = False

    @property
    def means(self) -> list[float]:
        """The mean of each goal over the runs that were made."""
        return [sum(column) / len(column) for column in zip(*self.values)]


@dataclass(frozen=True)
class Judged:
    """The defaults against the best settings, under a load and seeds that the search did not see.

    Attributes:
        workload: the load.
        run: runs of the defaults (first) and of the best.
        verdict: whether they differ, with the interval; ``None`` if nothing could be judged.
        refused: why nothing could be judged; else ``None``.
        worse: rows of a comparison, such as those of ``verdict.table``: tasks that wait longer or
            get less CPU time than under the defaults, whether a goal measures them or not.
    """

    workload: str
    run: Run
    verdict: Verdict | None
    refused: str | None
    worse: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> int:
        """0, or 6 if the runs do not decide."""
        return INCONCLUSIVE if self.verdict is None else self.verdict.status

    def __str__(self) -> str:
        if self.verdict is None:
            return textwrap.fill(str(self.refused), _COLUMNS)
        rows = list(self.verdict.table.rows())
        arms = list(dict.fromkeys(row["against"] for row in rows))
        lines = []
        for arm, name in zip(arms, _titles(len(arms))):
            lines.append(f"{name} against the defaults:")
            lines += [line for row in rows if row["against"] == arm for line in _row(row)]
            worse = [line for row in self.worse if row["against"] == arm for line in _row(row)]
            lines += ["  what gets worse:", *worse] if worse else []
        if not self.worse:
            lines.append("No task is shown to wait longer or to get less CPU time.")
        if self.status == INCONCLUSIVE:
            said = " ".join(self.verdict.sentences)
            for arm, name in zip(arms, _titles(len(arms))):
                said = said.replace(arm, name)
            lines.append(textwrap.fill(said, _COLUMNS))
        return "\n".join(lines)


# What people read for the words of a table's column.
_WORDS = {"faster": "better", "slower": "worse"}


def _titles(count: int) -> list[str]:
    """What the settings of an answer are called."""
    return ["best"] if count == 1 else [f"best {number}" for number in range(1, count + 1)]


def _row(row: Mapping[str, Any], name: str | None = None) -> list[str]:
    """A row of a comparison in lines of at most 80 columns: metric, change, interval, verdict."""
    title = name or row["metric"]
    if row["refused"]:
        return textwrap.wrap(f"{title}: {row['refused']}", _COLUMNS, **_INDENTED)
    what, said = ("ratio", "{:+.1f} %") if row["ratio"] is not None else ("difference", "{:+,.0f}")
    values = [row[what], row[f"{what}_low"], row[f"{what}_high"]]
    if what == "ratio":
        values = [None if it is None else (it - 1) * 100 for it in values]
    change, low, high = ["-" if it is None else said.format(it) for it in values]
    verdict = _WORDS.get(row["verdict"], row["verdict"] or "")
    figures = f"{change:>9}  ({low} to {high})  {verdict}".rstrip()
    if len(title) <= _TITLE:
        return [f"  {title:<{_TITLE}} {figures}"]
    return [f"  {title}", f"  {'':<{_TITLE}} {figures}"]


def _folded(words: str) -> list[str]:
    """Lines of at most 80 columns: a setting with many knobs is folded behind its commas."""
    lines = [""]
    for part in words.replace(",", ",\0").split("\0"):
        if len(lines[-1]) + len(part) > _COLUMNS and lines[-1].strip():
            lines.append("  ")
        lines[-1] += part
    return lines


@dataclass(frozen=True)
class Answer:
    """What the search found.

    Attributes:
        goals: the goals, written in full.
        best: the knobs of the best trial that matter; of two goals, those of at most three trials
            of the front, in the order of the first goal. All others have their defaults.
        put_back: knobs that the search had changed in the first of these, and that matter less.
        trials: all trials.
        runs: simulated runs that the search took, with those that put knobs back.
        importance: by knob of the first of ``best``, what becomes of the first goal when that knob
            alone has its default: a row of a comparison with the best. Empty if ``best`` has one
            knob, which the verdict is about, or if the runs do not say.
        judged: the best against the defaults under the load of the search, with seeds that the
            search did not see; ``None`` if nothing but the defaults is best.
        elsewhere: the same under each load that the search did not see; empty likewise.
    """

    policy: str
    workload: str
    goals: list[str]
    best: list[dict[str, int]]
    put_back: list[str]
    trials: list[Trial]
    runs: int
    importance: dict[str, dict[str, Any]]
    judged: Judged | None
    elsewhere: list[Judged]

    @property
    def status(self) -> int:
        """What ``runslice tune`` ends with: 0, or 6 if a load's runs do not decide."""
        judged = [self.judged] if self.judged else []
        return max((it.status for it in [*judged, *self.elsewhere]), default=0)

    def __str__(self) -> str:
        tried = f"{len(self.trials)} settings in {self.runs} runs"
        lines = _folded(f"{self.policy} under {self.workload}, {', '.join(self.goals)}: {tried}")
        if self.judged is None:
            lines.append("No setting was better than the defaults in the search.")
            return "\n".join(lines) + "\n"
        words = [
            f"{self.policy}:{','.join(f'{name}={value}' for name, value in knobs.items())}"
            for knobs in self.best
        ]
        judged = ["With seeds that the search did not see:", "", str(self.judged)]
        # A search always finds a setting; without a verdict it recommends none.
        is_shown = self.judged.status != INCONCLUSIVE
        found = [] if is_shown else ["First in the search, and not shown to be better:"]
        for name, word in zip(_titles(len(words)), words):
            found += _folded(f"{name}: {word}")
        if self.put_back:
            found.append(f"{len(self.put_back)} other knobs have their defaults: they matter less")
        if self.importance:
            found.append(f"With one knob of it put back, {self.goals[0]} changes by:")
            for name, row in self.importance.items():
                found += _row(row, name)
        lines += [*found, "", *judged] if is_shown else [*judged, "", *found]
        for it in self.elsewhere:
            lines += ["", f"Under {it.workload}, which the search did not see:", "", str(it)]
        return "\n".join(lines) + "\n"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def tune(
    policy: PolicyLike,
    workload: WorkloadLike | None = None,
    goals: str | Sequence[str] = (),
    *,
    unseen: Sequence[WorkloadLike] = (),
    budget: int = 200,
    knobs: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    search_runs: int = SEARCH_RUNS,
    judge_runs: int = JUDGE_RUNS,
    search_seed: int = 1,
    progress: Callable[[Trial], None] | None = None,
    **machine: Unpack[OneRun],
) -> Answer:
    """Search the knobs of a policy, by Optuna, for those that serve the goals best.

    Every setting is run with the same seeds. With one goal, a setting that is clearly worse than
    the best is given up before all seeds are run (Wilcoxon's signed-rank test). Then a third of the
    budget puts knobs back to their defaults, as long as nine tenths of the gain stay. The answer
    compares the defaults with what is left under seeds that the search did not see.

    Args:
        policy: the policy. Knobs that are set in it stay as they are.
        workload: the workload.
        goals: one or two goals in the words of ``runslice choose``, such as ``"p99 wait of ui"``.
        unseen: loads to judge the answer under besides. The search does not see them. ``scale``
            is not theirs.
        budget: most simulated runs of the search, with those that put knobs back.
        knobs: the knobs to search, or their ``(least, greatest)`` values. Default: all, in the
            ranges that the policy states.
        executor: where the runs are made. Default: here, one after the other; then the same request
            gives the same answer.
        workers: settings under way at once. Default: 1, or what the executor says.
        search_runs: seeds of each setting.
        judge_runs: seeds of the answer.
        search_seed: seed of the search itself.
        progress: is called with each trial that is over.
        machine: see ``OneRun``; ``seed`` is that of the search's first run.

    Raises:
        UnsupportedError: Optuna is not installed.
        UsageError: a goal, knob or value does not exist.
        Error: a file is bad, or no run has the goal.
    """
    for option in ("runs", "jobs"):
        if option in machine:
            raise TypeError(f"tune() has no option {option!r}: see search_runs and judge_runs")
    goals = [goals] if isinstance(goals, str) else list(goals)
    if not 1 <= len(goals) <= 2:
        raise _runslice.UsageError(f"{len(goals)} goals are given; give one or two")
    if budget < 2 * search_runs:
        raise _runslice.UsageError(
            f"a budget of {budget} runs is too small: two settings take {2 * search_runs}"
        )
    search = _Search(Policy(policy), workload, goals, dict(machine), search_runs)
    others = [Workload(it) for it in unseen]
    for load in others:
        # A goal that a load does not have is told before the search.
        search.short(load, 1)
    space = _space(search.policy, knobs)
    spare = budget // _SPARE if len(space) > 1 else 0
    if budget - spare < 2 * search_runs:
        spare = 0
    search.go(space, budget - spare, search_seed, executor, workers, progress)
    return search.answer(judge_runs, others, _Room(budget - search.made, executor))


def _space(
    policy: Policy, wanted: Sequence[str] | Mapping[str, Sequence[int]] | None
) -> dict[str, Knob]:
    """The knobs to search, with their ranges."""
    known = {knob.name: knob for knob in policy.knobs}
    fixed = {name for name, _ in policy._policy.set}
    names = [name for name in known if name not in fixed] if wanted is None else list(wanted)
    space: dict[str, Knob] = {}
    for name in names:
        if name not in known:
            raise _runslice.UsageError(
                f"{policy.name} has no knob `{name}`; there are: {', '.join(known)}"
            )
        knob = known[name]
        if isinstance(wanted, Mapping):
            low, high = wanted[name]
            if not knob.min <= low <= high <= knob.max:
                raise _runslice.UsageError(
                    f"{name}: {low} to {high} is not in {knob.min} to {knob.max}"
                )
            default = min(max(knob.default, low), high)
            knob = Knob(name, default, low, high, knob.unit, knob.doc)
        space[name] = knob
    if not space:
        raise _runslice.UsageError(f"{policy.name} has no knob to search")
    return space


def _measure(request: tuple[Any, ...]) -> list[float | None]:
    """One run: what was measured of each goal. An ejected policy has measured nothing."""
    word, code, name, text, goals, knobs, seed, machine = request
    policy = Policy(word) if code is None else Policy.from_bytes(code, word)
    load = name if text is None else Workload.from_text(text, name)
    settings = {**machine, "seed": seed}
    run = Run(request_of(policy.set(knobs), load, settings, goals).simulate())
    (end,) = run.ends
    return [None] * len(goals) if end.ejection else end.goals


@dataclass
class _Room:
    """Runs that may still be made, and where."""

    runs: int
    executor: Executor | None


class _Search:
    """A search under way."""

    def __init__(
        self,
        policy: Policy,
        workload: WorkloadLike | None,
        goals: list[str],
        machine: dict[str, Any],
        runs: int,
    ) -> None:
        try:
            import optuna
            import scipy.stats  # noqa: F401  (the pruner takes it)
        except ImportError as error:
            from ._engines import needs

            raise _runslice.UnsupportedError(needs("tune", error)) from error
        self.optuna = optuna
        self.policy, self.load = policy, None if workload is None else Workload(workload)
        read = [_runslice.goal(text) for text in goals]
        self.goals = [name for name, _ in read]
        self.higher = [higher for _, higher in read]
        self.machine = machine
        # The seeds come from runs of nothing: the simulator derives them.
        self.seeds = [end.seed for end in self.short(self.load, runs).ends]
        self.trials: list[Trial] = []
        self.made = 0
        self.study: Any = None

    def settings(self, load: Workload | None) -> dict[str, Any]:
        """The options of runs under a load."""
        is_own = load is self.load
        return {key: it for key, it in self.machine.items() if is_own or key != "scale"}

    def short(self, load: Workload | None, runs: int, seed: int | None = None) -> Run:
        """Runs of next to nothing: a nanosecond."""
        settings = {**self.settings(load), "runs": runs, "duration": "1ns"}
        if seed is not None:
            settings["seed"] = seed
        return Run(request_of(self.policy, load, settings, self.goals).simulate())

    def request(self, knobs: Mapping[str, int], seed: int) -> tuple[Any, ...]:
        word = self.policy.word
        # A built-in policy is everywhere, and what is in a file may be only here.
        is_built_in = word.split(":")[0] in dict(_runslice.policies())
        code = None if is_built_in else self.policy.object
        if self.load is None:
            name, text = None, None
        else:
            is_known = self.load.word in dict(_runslice.workloads())
            name, text = self.load.word, None if is_known else self.load.text
        return word, code, name, text, self.goals, dict(knobs), seed, self.machine

    def go(
        self,
        space: Mapping[str, Knob],
        budget: int,
        seed: int,
        executor: Executor | None,
        workers: int | None,
        progress: Callable[[Trial], None] | None,
    ) -> None:
        """Tries settings until the budget is spent."""
        optuna = self.optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            pruner = optuna.pruners.NopPruner()
            if len(self.goals) == 1:
                pruner = optuna.pruners.WilcoxonPruner(p_threshold=0.1)
            self.study = optuna.create_study(
                directions=["maximize" if higher else "minimize" for higher in self.higher],
                sampler=optuna.samplers.TPESampler(seed=seed),
                pruner=pruner,
            )
        self.study.enqueue_trial({name: knob.default for name, knob in space.items()})
        from ._engines import width

        lanes = 1 if executor is None else workers or width(executor)
        flying: dict[Future[list[float | None]], tuple[Any, Trial]] = {}
        # A setting is begun only if there are runs left to see it through.
        reserved = 0
        over = 0
        ran: dict[int, int] = {}
        while True:
            while len(flying) < lanes and over + reserved + len(self.seeds) <= budget:
                asked = self.study.ask()
                knobs = {name: _suggest(asked, knob) for name, knob in space.items()}
                trial = Trial(len(self.trials), knobs)
                self.trials.append(trial)
                reserved += len(self.seeds)
                flying[self.start(executor, trial)] = (asked, trial)
            if not flying:
                break
            ready, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in sorted(ready, key=lambda it: flying[it][1].number):
                asked, trial = flying.pop(future)
                self.made += 1
                ran[trial.number] = ran.get(trial.number, 0) + 1
                if self.take(asked, trial, future.result()):
                    flying[self.start(executor, trial)] = (asked, trial)
                    continue
                # What the setting did not take is free again.
                reserved -= len(self.seeds)
                over += ran[trial.number]
                if progress is not None:
                    progress(trial)

    def start(self, executor: Executor | None, trial: Trial) -> Future[list[float | None]]:
        """The next run of a setting."""
        request = self.request(trial.knobs, self.seeds[len(trial.values)])
        if executor is not None:
            return executor.submit(_measure, request)
        future: Future[list[float | None]] = Future()
        future.set_result(_measure(request))
        return future

    def take(self, asked: Any, trial: Trial, values: list[float | None]) -> bool:
        """Keeps what a run gave; whether the setting is to be run again."""
        state = self.optuna.trial.TrialState
        if any(value is None for value in values):
            # Ejected, or nothing to measure: no setting to recommend.
            if trial.number == 0:
                raise _runslice.Error(
                    f"{self.policy.name} with its defaults has no {' or '.join(self.goals)}: it "
                    "was ejected, or no such thing happened in the run"
                )
            trial.pruned = True
            self.study.tell(asked, state=state.FAIL)
            return False
        trial.values.append([value for value in values if value is not None])
        step = len(trial.values) - 1
        if len(self.goals) == 1:
            asked.report(trial.values[-1][0], step)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
                is_hopeless = step > 0 and asked.should_prune()
            if is_hopeless and len(trial.values) < len(self.seeds):
                trial.pruned = True
                # The mean so far is what the sampler learns from a setting that is given up.
                self.study.tell(asked, trial.means[0])
                return False
        if len(trial.values) < len(self.seeds):
            return True
        self.study.tell(asked, trial.means if len(self.goals) > 1 else trial.means[0])
        return False

    def answer(self, judge_runs: int, unseen: Sequence[Workload], room: _Room) -> Answer:
        """The best, judged with seeds that the search did not see."""
        whole = [it for it in self.trials if len(it.values) == len(self.seeds)]
        front = [it for it in whole if not any(self.beats(other, it) for other in whole)]
        front.sort(key=lambda it: it.means[0], reverse=self.higher[0])
        # Of settings with one result the first is enough.
        seen: set[tuple[float, ...]] = set()
        best = []
        for trial in front:
            if tuple(trial.means) not in seen and trial.number != 0:
                best.append(trial)
            seen.add(tuple(trial.means))
        if len(best) > _FRONT:
            best = [best[0], best[len(best) // 2], best[-1]]
        better: list[dict[str, int]] = []
        put_back: list[str] = []
        for number, trial in enumerate(best):
            share = _Room(room.runs // (len(best) - number), room.executor)
            room.runs -= share.runs
            knobs = self.needed(trial, share)
            room.runs += share.runs
            if number == 0:
                put_back = [name for name in self.changed(trial) if name not in knobs]
            if knobs not in better:
                better.append(knobs)
        arms = [self.policy, *(self.policy.set(knobs) for knobs in better)]
        loads = [self.load, *unseen] if better else []
        judged = [self.judge(arms, load, judge_runs) for load in loads]
        return Answer(
            policy=self.policy.name,
            workload=self.load.name if self.load else "",
            goals=self.goals,
            best=better,
            put_back=put_back,
            trials=self.trials,
            runs=self.made,
            importance=self.importance(better[0], judge_runs) if better else {},
            judged=judged[0] if judged else None,
            elsewhere=judged[1:],
        )

    def changed(self, trial: Trial) -> list[str]:
        """Knobs of a trial that have not their defaults."""
        defaults = {knob.name: knob.default for knob in self.policy.knobs}
        return [name for name, value in trial.knobs.items() if value != defaults[name]]

    def needed(self, trial: Trial, room: _Room) -> dict[str, int]:
        """The knobs of a trial that have nine tenths of its gain; others have their defaults.

        Each is put back alone with a few seeds; then those without which most is lost are tried
        together, more each time, with all seeds; and of what is found each is left out once.
        """
        names = self.changed(trial)
        if room.runs < len(names) * _FEW:
            return {name: trial.knobs[name] for name in self.halved(trial, names, room)}
        if len(names) < 2:
            return {name: trial.knobs[name] for name in names}

        def without(out: str) -> float:
            return self.kept(trial, [name for name in names if name != out], room, _FEW)

        left = {name: without(name) for name in names}
        ordered = sorted(names, key=lambda name: left[name])
        kept, count = names, 1
        while count < len(names) and room.runs >= len(self.seeds):
            if self.kept(trial, ordered[:count], room) >= _KEPT:
                kept = ordered[:count]
                break
            count += max(1, count // 3)
        for name in reversed(kept if len(kept) < len(names) else []):
            fewer = [it for it in kept if it != name]
            if room.runs >= len(self.seeds) and self.kept(trial, fewer, room) >= _KEPT:
                kept = fewer
        return {name: trial.knobs[name] for name in kept}

    def halved(self, trial: Trial, names: list[str], room: _Room) -> list[str]:
        """The same with few runs: one half after the other, as long as one has the gain alone."""
        while len(names) > 1 and room.runs >= 2 * _FEW:
            middle = (len(names) + 1) // 2
            for half in (names[:middle], names[middle:]):
                if self.kept(trial, half, room, _FEW) >= _KEPT:
                    names = half
                    break
            else:
                break
        return names

    def kept(self, trial: Trial, names: list[str], room: _Room, most: int | None = None) -> float:
        """The part of a trial's gain that these knobs of it have alone, with at most so many seeds;
        fewer if half of the gain is gone."""
        knobs = {name: trial.knobs[name] for name in names}
        made = Trial(-1, {})
        share = 0.0
        for values in self.each(knobs, room.executor, most):
            room.runs -= 1
            self.made += 1
            if any(value is None for value in values):
                return -1.0
            made.values.append([value for value in values if value is not None])
            share = self.share(trial, made)
            if len(made.values) >= _FEW and share < 0.5:
                break
        return share

    def each(
        self, knobs: Mapping[str, int], executor: Executor | None, most: int | None
    ) -> Iterator[list[float | None]]:
        """What is measured with each of the first seeds of the search, in their order."""
        requests = [self.request(knobs, seed) for seed in self.seeds[:most]]
        if executor is None:
            yield from map(_measure, requests)
            return
        futures = [executor.submit(_measure, it) for it in requests]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def share(self, trial: Trial, made: Trial) -> float:
        """The part of a trial's gain over the first one that another setting has with its first
        seeds; of several goals the least."""
        count = len(made.values)
        first, best = (Trial(-1, {}, it.values[:count]) for it in (self.trials[0], trial))
        shares = []
        for base, top, has, higher in zip(first.means, best.means, made.means, self.higher):
            sign = 1 if higher else -1
            gain = sign * (top - base)
            # What it costs elsewhere is told when it is judged.
            if gain > 0:
                shares.append(1 - max(sign * (top - has), 0.0) / gain)
        return min(shares, default=0.0)

    def beats(self, one: Trial, other: Trial) -> bool:
        """Whether ``one`` is nowhere worse than ``other`` and somewhere better."""
        pairs = [
            (a, b) if higher else (-a, -b)
            for a, b, higher in zip(one.means, other.means, self.higher)
        ]
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    def judge(self, arms: list[Policy], load: Workload | None, runs: int) -> Judged:
        """Runs with other seeds than those of the search."""
        used = set(self.seeds)
        seed = max(used) % 2**32
        while True:
            seed += 1
            if used.isdisjoint(end.seed for end in self.short(load, runs, seed).ends):
                break
        settings = {**self.settings(load), "seed": seed, "runs": runs}
        run = Run(request_of(arms, load, settings, self.goals).simulate())
        verdict, refused = None, None
        try:
            verdict = Verdict(run._run.judge({}))
        except _runslice.Error as error:
            # No spread, or too few runs with the goal: the words say it.
            refused = str(error)
        worse = []
        try:
            rows = compare(run, metrics=_WATCHED).table.rows()
            worse = [row for row in rows if row["verdict"] in ("slower", "less")]
        except _runslice.Error:
            # Nothing can be compared, and nothing is shown worse.
            pass
        return Judged(load.name if load else "", run, verdict, refused, worse)

    def importance(self, best: dict[str, int], runs: int) -> dict[str, dict[str, Any]]:
        """By knob, what becomes of the first goal when that knob alone has its default."""
        if len(best) < 2:
            return {}
        without = [{name: it for name, it in best.items() if name != out} for out in best]
        arms = [self.policy.set(knobs) for knobs in [best, *without]]
        verdict = self.judge(arms, self.load, runs).verdict
        if verdict is None:
            return {}
        rows = [row for row in verdict.table.rows() if not row["refused"]]
        of_goal = [row for row in rows if row["metric"] == rows[0]["metric"]]
        by_arm = {row["against"]: row for row in of_goal}
        return {name: by_arm[arm.name] for name, arm in zip(best, arms[1:]) if arm.name in by_arm}


def _suggest(asked: Any, knob: Knob) -> int:
    """A value for a knob."""
    if knob.max - knob.min <= 1:
        return int(asked.suggest_categorical(knob.name, list(range(knob.min, knob.max + 1))))
    is_wide = knob.min > 0 and knob.max >= _WIDE * knob.min
    return int(asked.suggest_int(knob.name, knob.min, knob.max, log=is_wide))


def verb(words: list[str]) -> int:
    """``runslice tune POLICY -w LOAD --goal ...``."""
    parser = argparse.ArgumentParser(
        "runslice tune",
        description="Search the knobs of a policy for those that serve a goal best.",
        allow_abbrev=False,
    )
    parser.add_argument("policy", help="policy whose knobs are searched; those that are set stay")
    parser.add_argument("-w", "--workload", help="workload: a built-in name or a file")
    parser.add_argument(
        "--goal", action="append", required=True, help="goal, such as 'p99 wait of ui'; one or two"
    )
    parser.add_argument(
        "--unseen",
        action="append",
        default=[],
        metavar="WORKLOAD",
        help="workload that the search does not see: judge the answer under it, too",
    )
    parser.add_argument("--budget", type=int, default=200, help="most runs of the search; 200")
    parser.add_argument(
        "--knob", action="append", help="knob to search: NAME, or NAME=LEAST..MOST. Default: all"
    )
    parser.add_argument(
        "--on",
        default=None,
        help="engine: threads, processes, ray, dask. Default: none, one run after the other",
    )
    parser.add_argument("--workers", type=int, help="workers of the engine")
    parser.add_argument(
        "--search-runs", type=int, default=SEARCH_RUNS, help="seeds of each setting; 8"
    )
    parser.add_argument(
        "--judge-runs",
        type=int,
        default=JUDGE_RUNS,
        help="seeds of the answer, which the search does not see; 20",
    )
    parser.add_argument("--search-seed", type=int, default=1, help="seed of the search itself; 1")
    for option in ("cpus", "smt", "llc", "node", "hz", "seed"):
        parser.add_argument(f"--{option}", type=int, help="as of `runslice sim`")
    texts = ("kernel", "profile", "smt_share", "hardware", "governor", "duration")
    for option in texts:
        name = option.replace("_", "-")
        parser.add_argument(f"--{name}", help="as of `runslice sim`")
    parser.add_argument(
        "--scale", action="append", default=[], metavar="NAME=VALUE", help="as of `runslice sim`"
    )
    asked = parser.parse_args(words)
    machine: dict[str, Any] = {
        option: getattr(asked, option)
        for option in ("cpus", "smt", "llc", "node", "hz", "seed", *texts)
        if getattr(asked, option) is not None
    }
    if asked.scale:
        pairs = [pair.partition("=") for pair in asked.scale]
        machine["scale"] = {name: value for name, _, value in pairs}
    executor = None
    if asked.on is not None:
        from ._engines import maker

        executor = maker(asked.on, asked.workers)()
    tell = _tell if sys.stderr.isatty() else None
    try:
        answer = tune(
            asked.policy,
            asked.workload,
            asked.goal,
            unseen=asked.unseen,
            budget=asked.budget,
            knobs=_knobs(asked.knob),
            executor=executor,
            workers=asked.workers,
            search_runs=asked.search_runs,
            judge_runs=asked.judge_runs,
            search_seed=asked.search_seed,
            progress=tell,
            **machine,
        )
    finally:
        if executor is not None:
            executor.shutdown(cancel_futures=True)
    if tell is not None:
        print(file=sys.stderr)
    print(answer, end="")
    return answer.status


def _tell(trial: Trial) -> None:
    print(f"\rsetting {trial.number + 1}", end="", file=sys.stderr)


def _knobs(words: list[str] | None) -> list[str] | dict[str, tuple[int, int]] | None:
    """Names, or names with ranges."""
    if words is None:
        return None
    if not any("=" in word for word in words):
        return words
    ranges = {}
    for word in words:
        name, _, span = word.partition("=")
        low, _, high = span.partition("..")
        try:
            ranges[name] = (int(low), int(high))
        except ValueError as error:
            raise _runslice.UsageError(f"`{word}` is no range such as NAME=1..9") from error
    return ranges
