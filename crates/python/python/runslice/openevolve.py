"""The contract of OpenEvolve: ``evaluate(program_path)`` gives metrics and artifacts.

An evaluator's file for OpenEvolve is::

    from runslice.openevolve import evaluator

    evaluate, evaluate_stage1, evaluate_stage2 = evaluator("e.toml")

The program that evolves is the C source of a policy (``file_suffix: ".bpf.c"``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._evaluate import SourceEvaluator

try:
    from openevolve.evaluation_result import EvaluationResult
except ImportError:

    @dataclass
    class EvaluationResult:  # type: ignore[no-redef]
        """As OpenEvolve's, where that is not installed."""

        metrics: dict[str, float]
        artifacts: dict[str, Any] = field(default_factory=dict)


Evaluate = Callable[[str], EvaluationResult]


def evaluator(
    spec: str | os.PathLike[str],
    *,
    key: bytes | None = None,
    epoch: int = 0,
    jobs: int | None = None,
) -> tuple[Evaluate, Evaluate, Evaluate]:
    """``evaluate``, ``evaluate_stage1`` and ``evaluate_stage2`` for OpenEvolve.

    The stages are one cascade inside of runslice, which ends at the first refusal. The first stage
    of OpenEvolve asks it, and the second gets the same answer, so that ``cascade_thresholds`` keep
    refused candidates (score -1) out.

    Args:
        spec: see :func:`runslice.evaluate`.
        key: likewise.
        epoch: likewise.
        jobs: likewise.
    """
    judge = SourceEvaluator(spec, key=key, epoch=epoch, jobs=jobs)
    known: dict[str, EvaluationResult] = {}

    def evaluate(program_path: str) -> EvaluationResult:
        source = Path(program_path).read_text(encoding="utf-8")
        if source not in known:
            known.clear()
            known[source] = result_of(judge.judge(source))
        return known[source]

    return evaluate, evaluate, evaluate


def result_of(candidate: dict[str, Any]) -> EvaluationResult:
    """A candidate of the document as OpenEvolve takes it."""
    metrics = {
        "combined_score": float(candidate["combined_score"]),
        "valid": 0.0 if candidate["status"] == "refused" else 1.0,
    }
    for load in candidate["loads"]:
        metrics[f"load_{load['load']}"] = float(load["score"])
    artifacts = {"advice": candidate["artifacts"]["advice"], "stage": candidate["stage"]}
    return EvaluationResult(metrics=metrics, artifacts=artifacts)
