"""A search without a model: constants, comparisons, flags and the order of queues are changed.

Make a key, and write ``e.toml`` with the policy itself as the baseline and a part ``[held-out]``
(docs/evaluate.md)::

    head -c 32 /dev/urandom > key
    runslice list --copy fifo -o initial.bpf.c
    python mutation_search.py e.toml initial.bpf.c key 1000 60

It ends after 1,000 candidates or 60 minutes. Each candidate is one to three changes away from one
of the best five so far. At the end these five are judged in draws that the search has not seen
(``--seal``), which spends the key.

What came out with mlfq under desk, six draws of 500 ms, and ``profile = "ideal"``: two searches of
196 and 96 candidates, in 11 and 8 minutes of a shared computer. Of these 45 were refused, 23 for
what other tasks lose. The best had +12.2 % and +22.1 % in the draws of the search. Of the ten that
were sealed none is shown better, and three break a limit there.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import runslice

BATCH = 8
"""Candidates of one call: they share the runs of the baseline."""
BEST = 5
EPOCH = 100
"""Candidates until all draws are new, and the best are judged anew."""
OUTSIDE = re.compile(
    r'/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*|"[^"\n]*"(?:,\s*\d+, \d+\);)?', re.DOTALL | re.MULTILINE
)
"""What of a source is nothing to change: comments, the preprocessor, texts, ranges of knobs."""
SIGNS = {"<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"]}
SIGNS |= {"==": ["!="], "!=": ["=="]}
FLAGS = {" enq_flags);": [" enq_flags | SCX_ENQ_HEAD);"], " | SCX_ENQ_HEAD);": [");"]}
FLAGS |= {"SCX_KICK_PREEMPT": ["SCX_KICK_IDLE"], "SCX_KICK_IDLE": ["SCX_KICK_PREEMPT"]}
QUEUES = re.compile(r"(.*dsq_move_to_local.*\n)((?:[ \t]*return;\n)?)(.*dsq_move_.*)")

Change = tuple[int, int, list[str]]
Scored = tuple[float, str]


def changes(source: str) -> Iterator[Change]:
    """Every place that can be changed, with what may stand there instead."""
    code = OUTSIDE.sub(lambda it: re.sub(r"[^\n]", " ", it[0]), source)
    for it in re.finditer(r"(?<![\w.])\d+(?=U?L*\b)", code):
        value = int(it[0])
        near = {value * 2, value // 2, value * 10, value // 10, value + 1} - {value}
        yield it.start(), it.end(), [str(other) for other in sorted(near)]
    for it in re.finditer(r"(?<![<>=!-])(?:[<>=!]=|[<>])(?![<>=])", code):
        yield it.start(), it.end(), SIGNS[it[0]]
    for flag, others in FLAGS.items():
        for it in re.finditer(re.escape(flag), code):
            yield it.start(), it.end(), others
    for it in QUEUES.finditer(code):
        first, between, second = (source[slice(*it.span(at))] for at in (1, 2, 3))
        yield it.start(), it.end(), [f"{second}\n{between}{first.rstrip()}"]


def changed(source: str, dice: random.Random) -> str:
    """The source with one to three changes."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        start, end, others = dice.choice(list(changes(source)))
        source = source[:start] + dice.choice(others) + source[end:]
    return source


def judged(spec: str, key: bytes, epoch: int, sources: list[str]) -> list[tuple[float, str]]:
    """The score of each source, and the limit or stage that refused it."""
    # What the compiler thinks of a change is nothing that anybody will read.
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"candidate{at}.bpf.c" for at in range(len(sources))]
        for path, source in zip(paths, sources):
            path.write_text(source, encoding="utf-8")
        found = runslice.evaluate(spec, paths, key=key, epoch=epoch, jobs=1).candidates
    why = [it["limits"][0]["limit"] if it["status"] == "refused" else "scored" for it in found]
    return [(float(it["combined_score"]), word) for it, word in zip(found, why)]


def search(spec: str, initial: str, key: bytes, count: int, minutes: float) -> list[Scored]:
    """The best of so many candidates, and on the way what became of all."""
    dice, seen, reasons = random.Random(1), {initial}, Counter[str]()
    best: list[Scored] = [(0.0, initial)]
    began = time.monotonic()
    with ProcessPoolExecutor() as pool:
        lanes = getattr(pool, "_max_workers", 1)
        while (done := sum(reasons.values())) < count and time.monotonic() < began + minutes * 60:
            epoch, room = done // EPOCH, EPOCH - done % EPOCH
            if room == EPOCH:
                sources = [source for _, source in best]
                again = judged(spec, key, epoch, sources)
                best = [(score, source) for (score, _), source in zip(again, sources)]
            batches: list[list[str]] = [[] for _ in range(lanes)]
            for number in range(min(BATCH * lanes, room, count - done)):
                text = initial
                while text in seen:
                    text = changed(dice.choice(best)[1], dice)
                seen.add(text)
                batches[number % lanes].append(text)
            asked = [(it, pool.submit(judged, spec, key, epoch, it)) for it in batches if it]
            for sources, answer in asked:
                for (score, why), source in zip(answer.result(), sources):
                    reasons[why] += 1
                    best.append((score, source))
            # A change that changes no run has the score of what it was made of.
            first: dict[float, str] = {}
            for score, source in best:
                first.setdefault(score, source)
            best = sorted(first.items(), key=lambda it: -it[0])[:BEST]
            print(f"{sum(reasons.values())}: best {best[0][0]:+.4f}", file=sys.stderr)
    hours = (time.monotonic() - began) / 3600
    done = sum(reasons.values())
    print(f"{done} candidates, {done / hours:.0f} an hour on {lanes} CPUs: {dict(reasons)}")
    return best


def main(spec: str, initial: str, secret: str, count: str = "1000", minutes: str = "60") -> int:
    text = Path(initial).read_text(encoding="utf-8")
    best = search(spec, text, Path(secret).read_bytes(), int(count), float(minutes))
    names = [f"best{at}.bpf.c" for at in range(1, len(best) + 1)]
    for name, (score, source) in zip(names, best):
        Path(name).write_text(source, encoding="utf-8")
        print(f"{name}: {score:+.4f} in the draws of the search")
    seal = [sys.executable, "-m", "runslice", "evaluate", spec, *names, "--seal", "--secret", "0"]
    with open(secret, "rb") as key:
        return subprocess.run(seal, stdin=key, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
