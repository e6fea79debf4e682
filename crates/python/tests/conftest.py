"""What several tests share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# The package is not installed here, so that pytest does not find the fixture by itself.
from runslice.pytest_plugin import scheduler_keeps as scheduler_keeps

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("RUNSLICE_PROGRAM", str(ROOT / "target/debug/runslice"))

Cli = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls the program, without its name in the words, in a folder that is also ours."""
    monkeypatch.chdir(tmp_path)

    def call(words: list[str], *, status: int = 0) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([PROGRAM, *words], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == status, done.stderr.decode()
        return done

    return call
