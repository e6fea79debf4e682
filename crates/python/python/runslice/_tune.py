"""Search for the knobs of a policy that serve a goal best."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Unpack

from . import _runslice
from ._compare import Verdict
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
    """

    workload: str
    run: Run
    verdict: Verdict | None
    refused: str | None

    @property
    def status(self) -> int:
        """0, or 6 if the runs do not decide."""
        return INCONCLUSIVE if self.verdict is None else self.verdict.status

    def __str__(self) -> str:
        return str(self.verdict or self.refused).rstrip()


@dataclass(frozen=True)
class Answer:
    """What the search found.

    Attributes:
        goals: the goals, written in full.
        best: the knobs of the best trial; of several goals, those of the front in the order of the
            first goal.
        trials: all trials.
        runs: simulated runs that the search took.
        importance: share of each knob in the differences between trials, by the first goal; empty
            if there are too few trials to say.
        judged: the best against the defaults under the load of the search, with seeds that the
            search did not see; ``None`` if nothing but the defaults is best.
        elsewhere: the same under each load that the search did not see; empty likewise.
    """

    policy: str
    workload: str
    goals: list[str]
    best: list[dict[str, int]]
    trials: list[Trial]
    runs: int
    importance: dict[str, float]
    judged: Judged | None
    elsewhere: list[Judged]

    @property
    def status(self) -> int:
        """What ``runslice tune`` ends with: 0, or 6 if a load's runs do not decide."""
        judged = [self.judged] if self.judged else []
        return max((it.status for it in [*judged, *self.elsewhere]), default=0)

    def __str__(self) -> str:
        tried = f"{len(self.trials)} settings in {self.runs} runs"
        lines = [f"{self.policy} under {self.workload}, {', '.join(self.goals)}: {tried}"]
        if self.judged is None:
            lines.append("No setting was better than the defaults in the search.")
            return "\n".join(lines) + "\n"
        found = [
            f"{self.policy}:{','.join(f'{name}={value}' for name, value in knobs.items())}"
            for knobs in self.best
        ]
        if self.importance:
            shares = (f"{name} {share:.0%}" for name, share in self.importance.items())
            importance = [f"importance of the knobs: {', '.join(shares)}"]
        else:
            importance = []
        judged = ["With seeds that the search did not see:", "", str(self.judged)]
        if self.judged.status == INCONCLUSIVE:
            # A search always finds a setting; without a verdict it recommends none.
            lines += [*judged, ""]
            lines += [f"first in the search, not shown to be better: {it}" for it in found]
            lines += importance
        else:
            lines += [f"best: {it}" for it in found]
            lines += [*importance, "", *judged]
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
    the best is given up before all seeds are run (Wilcoxon's signed-rank test). The answer compares
    the defaults with the best under seeds that the search did not see.

    Args:
        policy: the policy. Knobs that are set in it stay as they are.
        workload: the workload.
        goals: one or two goals in the words of ``runslice choose``, such as ``"p99 wait of ui"``.
        unseen: loads to judge the answer under besides. The search does not see them. ``scale``
            is not theirs.
        budget: most simulated runs of the search.
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
    search.go(space, budget, search_seed, executor, workers, progress)
    return search.answer(judge_runs, others)


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

    def answer(self, judge_runs: int, unseen: Sequence[Workload]) -> Answer:
        """The best, judged with seeds that the search did not see."""
        whole = [it for it in self.trials if len(it.values) == len(self.seeds)]
        front = [it for it in whole if not any(self.beats(other, it) for other in whole)]
        front.sort(key=lambda it: it.means[0], reverse=self.higher[0])
        # Of settings with one result the first is enough.
        seen: set[tuple[float, ...]] = set()
        best = []
        for trial in front:
            if tuple(trial.means) not in seen:
                seen.add(tuple(trial.means))
                best.append(trial)
        better = [it.knobs for it in best if it.number != 0]
        arms = [self.policy, *(self.policy.set(knobs) for knobs in better)]
        loads = [self.load, *unseen] if better else []
        judged = [self.judge(arms, load, judge_runs) for load in loads]
        return Answer(
            policy=self.policy.name,
            workload=self.load.name if self.load else "",
            goals=self.goals,
            best=better,
            trials=self.trials,
            runs=self.made,
            importance=self.importance(),
            judged=judged[0] if judged else None,
            elsewhere=judged[1:],
        )

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
        return Judged(load.name if load else "", run, verdict, refused)

    def importance(self) -> dict[str, float]:
        """Share of each knob, by Optuna's PED-ANOVA; empty if it cannot say."""
        optuna = self.optuna
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            try:
                return dict(
                    optuna.importance.get_param_importances(
                        self.study, evaluator=evaluator, target=lambda trial: trial.values[0]
                    )
                )
            except (RuntimeError, ValueError):
                return {}


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
