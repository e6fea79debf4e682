"""The fixture of pytest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runslice


def test_a_good_policy_keeps_its_limits(scheduler_keeps: Callable[..., None]) -> None:
    scheduler_keeps("mlfq", "desk", "p99 wait of pointer < 5s", machine="tiny-2llc", duration="1s")


def test_a_bad_policy_fails_with_the_line(scheduler_keeps: Callable[..., None]) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        scheduler_keeps("fifo", "desk", "p99 wait of pointer < 1ms", duration="1s", seed=7)
    said = str(failed.value)
    assert said.startswith("fifo under desk breaks a limit\n  limit: p99 wait of pointer < 1ms\n")
    assert "fifo.bpf.c:" in said
    assert "runslice explain fifo -w desk --seed 7 --duration 1s --task pointer --worst 1" in said


def test_a_wrong_test_is_no_failure_of_the_policy(scheduler_keeps: Callable[..., None]) -> None:
    wrong: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("fifo", "dsk"), {}),
        (("fifo", "desk", "fast"), {}),
        (("fifo", "desk"), {"machine": "8cpus"}),
        (("fifo", "desk"), {"runs": 0}),
    ]
    for words, options in wrong:
        with pytest.raises(runslice.UsageError):
            scheduler_keeps(*words, duration="100ms", **options)


def test_a_file_that_is_not_there_is_no_wrong_use(scheduler_keeps: Callable[..., None]) -> None:
    with pytest.raises(runslice.Error) as failed:
        scheduler_keeps("no/such.bpf.o", "desk")
    assert not isinstance(failed.value, runslice.UsageError)
    assert "no/such.bpf.o" in str(failed.value)


def test_a_source_that_has_changed_is_compiled_anew(tmp_path: Path) -> None:
    source = tmp_path / "mine.bpf.c"
    text = Path(__file__).parents[3].joinpath("policies/fifo.bpf.c").read_text()
    source.write_text(text)
    first = runslice.Policy(str(source))
    source.write_text(text.replace("20000000", "10000000"))
    assert runslice.Policy(str(source)).object != first.object
