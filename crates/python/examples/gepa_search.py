"""A search with GEPA, whose model reads the advice of runslice.

::

    pip install 'runslice' gepa
    runslice list --copy fifo -o initial.bpf.c
    python gepa_search.py e.toml initial.bpf.c openai/gpt-4.1-mini
"""

import sys
from pathlib import Path

from runslice.gepa import Adapter


def main(spec: str, initial: str, model: str) -> None:
    import gepa

    result = gepa.optimize(
        seed_candidate={"policy": Path(initial).read_text(encoding="utf-8")},
        trainset=[spec],
        valset=[spec],
        adapter=Adapter(),
        reflection_lm=model,
        max_metric_calls=100,
    )
    Path("best.bpf.c").write_text(result.best_candidate["policy"], encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
