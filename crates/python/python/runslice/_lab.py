"""Questions about a run for students."""

from __future__ import annotations

import html
import json
from typing import Any

from . import _runslice

_QUESTIONS_MAX = 50


class Sheet:
    """Questions about a run of a policy, with answers that come from the run.

    Attributes:
        questions: each question with its answer.
        rules: what must be known of the policy.
        load: the jobs, as students are told of them.
    """

    __slots__ = ("_asked", "load", "questions", "rules")

    def __init__(self, asked: tuple[str, str | None, tuple[int, int]]) -> None:
        self._asked = asked
        document = self.json()
        self.questions = [(it["question"], it["answer"]) for it in document["questions"]]
        self.rules: list[str] = document["rules"]
        self.load: str = document["load"]

    def json(self) -> dict[str, Any]:
        """The document of ``runslice lab --json --answers``, read."""
        document: dict[str, Any] = json.loads(_runslice.lab_sheet(*self._asked, True)[0])
        return document

    def write(self, *, answers: bool = False) -> str:
        """What ``runslice lab`` writes, or with ``--answers``."""
        return _runslice.lab_sheet(*self._asked, answers)[1].decode()

    def command(self, *, answers: bool = False) -> list[str]:
        """The words of the command line that writes the same."""
        policy, workload, (seed, questions) = self._asked
        words = ["runslice", "lab", policy, "--seed", str(seed), "--questions", str(questions)]
        words += [] if workload is None else ["--workload", workload]
        return words + ["--answers"] * answers

    def __str__(self) -> str:
        return self.write()

    def __repr__(self) -> str:
        return f"<runslice.Sheet: {len(self.questions)} questions about {self._asked[0]}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def lab(policy: str, workload: str | None = None, *, seed: int = 1, questions: int = 5) -> Sheet:
    """Make questions about a run for students. It is ``runslice lab``.

    Args:
        policy: a policy as on the command line.
        workload: a workload as on the command line. Default: a few jobs on one CPU, made from the
            seed.
        seed: seed of the jobs and of the questions.
        questions: number of questions, 1 to 50.

    Raises:
        UsageError: a policy, workload, knob or value does not exist.
        Error: a file is bad.
    """
    if not 1 <= questions <= _QUESTIONS_MAX:
        raise _runslice.UsageError(f"questions={questions} is not in 1..={_QUESTIONS_MAX}")
    if not 0 <= seed < 1 << 64:
        raise _runslice.UsageError(f"seed={seed} is not in 0..=2**64 - 1")
    return Sheet((str(policy), workload, (seed, questions)))
