"""The adapter of GEPA: candidates are texts by component, and what it reflects on is the advice.

The one component is the C source of a policy::

    import gepa
    from runslice.gepa import Adapter

    gepa.optimize(
        seed_candidate={"policy": source},
        trainset=["e.toml"],
        adapter=Adapter(),
        ...
    )

An example of the training set is a file of ``runslice evaluate``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._evaluate import SourceEvaluator

try:
    from gepa.core.adapter import EvaluationBatch
except ImportError:

    @dataclass
    class EvaluationBatch:  # type: ignore[no-redef]
        """As GEPA's, where that is not installed."""

        outputs: list[Any]
        scores: list[float]
        trajectories: list[Any] | None = None


class Adapter:
    """``evaluate`` and ``make_reflective_dataset``, as ``gepa.core.adapter.GEPAAdapter`` has them.

    Args:
        component: name of the component that is the source.
        key: see :func:`runslice.evaluate`.
        epoch: likewise.
        jobs: likewise.
    """

    propose_new_texts = None

    def __init__(
        self,
        component: str = "policy",
        *,
        key: bytes | None = None,
        epoch: int = 0,
        jobs: int | None = None,
    ) -> None:
        self.component = component
        self._options: dict[str, Any] = {"key": key, "epoch": epoch, "jobs": jobs}

    def evaluate(
        self,
        batch: Sequence[str | os.PathLike[str]],
        candidate: Mapping[str, str],
        capture_traces: bool = False,
    ) -> EvaluationBatch:
        """Scores the candidate by each file of the batch."""
        source = candidate[self.component]
        judged = [SourceEvaluator(spec, **self._options).judge(source) for spec in batch]
        return EvaluationBatch(
            outputs=judged,
            scores=[float(it["combined_score"]) for it in judged],
            trajectories=list(judged) if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: Mapping[str, str],
        eval_batch: EvaluationBatch,
        components_to_update: Sequence[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """What a model reads before it writes the next source."""
        rows = [
            {
                "Inputs": candidate[self.component],
                "Generated Outputs": f"score {it['combined_score']:.4f}, {it['status']}",
                "Feedback": it["artifacts"]["advice"],
            }
            for it in eval_batch.trajectories or eval_batch.outputs
        ]
        return {component: rows for component in components_to_update}
