"""An evaluator's file for OpenEvolve, in a few lines.

Write ``e.toml`` (docs/evaluate.md) beside it, begin with the source of a shipped policy::

    runslice list --copy fifo -o initial.bpf.c
    openevolve-run initial.bpf.c openevolve_evaluator.py --config config.yaml

and set ``file_suffix: ".bpf.c"`` in ``config.yaml``. ``RUNSLICE_SPEC`` names another file, and
``RUNSLICE_KEY`` a file with the key of the draws.
"""

import os
from pathlib import Path

from runslice.openevolve import evaluator

key = os.environ.get("RUNSLICE_KEY")
evaluate, evaluate_stage1, evaluate_stage2 = evaluator(
    os.environ.get("RUNSLICE_SPEC", "e.toml"),
    key=None if key is None else Path(key).read_bytes(),
)
