"""Candidates of a search, and the contracts of OpenEvolve and GEPA with recorded proposals."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import runslice
from runslice.gepa import Adapter

EXAMPLES = Path(__file__).parent.parent / "examples"

SPEC = """
baseline = "fifo"
draws = 6
duration = "500ms"
[[load]]
load = "desk"
"""

# What a model proposed, as changes to the policy before: a source that does not compile, one that
# forgets tasks, a longer slice, which is worse, and a shorter one, which is better.
PROPOSALS: list[tuple[str, str]] = [
    ("scx_bpf_dsq_move_to_local(QUEUE);", "scx_bpf_dsq_move_to_local(NO_QUEUE);"),
    ("\tscx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);", "\tif (p->pid & 1) return;\n\\g<0>"),
    ("slice_ns, 20000000,", "slice_ns, 80000000,"),
    ("slice_ns, 20000000,", "slice_ns, 2000000,"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(SPEC)
    return tmp_path


@pytest.fixture
def source(folder: Path) -> str:
    from runslice import _runslice

    assert _runslice.main(["runslice", "list", "--copy", "fifo", "-o", "fifo.bpf.c"]) == 0
    return Path("fifo.bpf.c").read_text()


def proposed(source: str) -> list[str]:
    all = []
    for old, new in PROPOSALS:
        assert old in source
        all.append(source.replace(old, new.replace("\\g<0>", old)))
    return all


def search(source: str, judge: Callable[[str], float]) -> tuple[str, list[float]]:
    """The loop of every search: what is better than the best so far is kept."""
    best, scores = source, [judge(source)]
    for text in proposed(source):
        score = judge(text)
        if score > max(scores):
            best = text
        scores.append(score)
    return best, scores


def test_an_evaluation_is_that_of_the_command_line(folder: Path) -> None:
    from runslice import _runslice

    words = ["runslice", "evaluate", "e.toml", "fifo", "eevdf", "--format", "json", "-o", "a.json"]
    assert _runslice.main(words) == 0
    evaluation = runslice.evaluate("e.toml", ["fifo", "eevdf"])
    assert evaluation.write() == Path("a.json").read_bytes()
    assert not evaluation.held_out and evaluation.candidates[0]["combined_score"] == 0
    drawn = runslice.evaluate("e.toml", "eevdf", key=b"k" * 16)
    assert drawn.held_out and drawn.candidates[0] != evaluation.candidates[1]
    with pytest.raises(runslice.UsageError, match="at least 16"):
        runslice.evaluate("e.toml", "eevdf", key=b"k")
    with pytest.raises(runslice.UsageError, match="no policy is called"):
        runslice.evaluate("e.toml", "nobody")


def test_openevolve_searches_with_recorded_proposals(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNSLICE_SPEC", "e.toml")
    example = runpy.run_path(str(EXAMPLES / "openevolve_evaluator.py"))
    artifacts = []

    def judge(text: str) -> float:
        Path("program.bpf.c").write_text(text)
        first = example["evaluate_stage1"]("program.bpf.c")
        result = example["evaluate"]("program.bpf.c")
        assert first is result, "the stages are one cascade"
        artifacts.append(result.artifacts["advice"])
        assert result.metrics["valid"] == (result.metrics["combined_score"] != -1)
        return float(result.metrics["combined_score"])

    best, scores = search(source, judge)
    assert scores[:3] == [0, -1, -1] and scores[3] < 0 < scores[4]
    assert "slice_ns, 2000000," in best
    assert "NO_QUEUE" in artifacts[1] and "`fault`" in artifacts[2]


class RecordedModel(ThreadingHTTPServer):
    """Stands in for a model: answers chats with recorded proposals, in their order."""

    def __init__(self, texts: list[str]) -> None:
        self.prompts: list[str] = []
        prompts = self.prompts

        class Chat(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                prompts.append(self.rfile.read(int(self.headers["content-length"])).decode())
                text = texts[(len(prompts) - 1) % len(texts)]
                message = {"role": "assistant", "content": f"```c\n{text}\n```"}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                reply = {"object": "chat.completion", "id": "1", "created": 1, "model": "recorded"}
                body = json.dumps({**reply, "choices": [choice]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Chat)


CONFIG = """
diff_based_evolution: false
random_seed: 1
file_suffix: ".bpf.c"
language: c
max_code_length: 100000
llm: {{api_base: "http://127.0.0.1:{port}/v1", api_key: none, models: [{{name: recorded}}]}}
database: {{num_islands: 1}}
evaluator: {{cascade_thresholds: [-0.5], parallel_evaluations: 1}}
"""


def test_openevolves_own_loop_ends_with_the_best_of_recorded_proposals(source: str) -> None:
    pytest.importorskip("openevolve")
    with RecordedModel(proposed(source)) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        Path("config.yaml").write_text(CONFIG.format(port=model.server_port))
        words = ["fifo.bpf.c", str(EXAMPLES / "openevolve_evaluator.py"), "--output", "out"]
        words += ["--config", "config.yaml", "--iterations", str(len(PROPOSALS))]
        subprocess.run(
            [sys.executable, "-m", "openevolve.cli", *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )
        model.shutdown()
    best = Path("out/best")
    assert json.loads((best / "best_program_info.json").read_text())["metrics"]["valid"] == 1
    assert "slice_ns, 2000000," in (best / "best_program.c").read_text()
    assert len(model.prompts) == len(PROPOSALS)
    assert [p for p in model.prompts if "against the baseline" in p or "Refused at" in p]


def test_gepa_searches_with_recorded_proposals(source: str) -> None:
    adapter = Adapter()
    feedback = []

    def judge(text: str) -> float:
        batch = adapter.evaluate(["e.toml"], {"policy": text}, capture_traces=True)
        rows = adapter.make_reflective_dataset({"policy": text}, batch, ["policy"])
        feedback.append(rows["policy"][0]["Feedback"])
        assert len(batch.outputs) == len(batch.scores) == 1
        return batch.scores[0]

    best, scores = search(source, judge)
    assert scores[:3] == [0, -1, -1] and scores[3] < 0 < scores[4]
    assert "slice_ns, 2000000," in best and all(len(it) <= 4096 for it in feedback)


def test_a_search_without_a_model_ends_with_what_draws_say_that_it_has_not_seen(
    source: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("mutation_search")
    places = list(example.changes(source))
    assert any(source[start:end] == "20000000" for start, end, _ in places)
    for start, end, others in places:
        assert others and source[start:end] not in others
        for other in others:
            text = source[:start] + other + source[end:]
            assert example.OUTSIDE.findall(text) == example.OUTSIDE.findall(source), other

    # Of five nominees six draws show none.
    spec = SPEC.replace("draws = 6", "draws = 8")
    Path("e.toml").write_text(f"{spec}[held-out]\ngenerated = 1\n")
    Path("key").write_bytes(bytes(range(32)))
    example.main("e.toml", "fifo.bpf.c", "key", "4", "10")
    said = capfd.readouterr().out
    assert said.startswith("4 candidates, ") and "The key is spent." in said, said
    nominees = [line for line in said.splitlines() if line.startswith("best1.bpf.c")]
    assert len(nominees) == 2, "once in the draws of the search, and once sealed"
    assert Path("best1.bpf.c").read_text() != ""
