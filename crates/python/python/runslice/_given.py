"""What is given: policies and workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from . import _runslice

Value: TypeAlias = int | str | bool
"""The value of a knob: a whole number, a truth value, or what the command line takes."""


@dataclass(frozen=True)
class Knob:
    """A number that can be set in a policy before it runs.

    Attributes:
        name: its name, also that of the variable in the source.
        default: value in the object.
        min: least value.
        max: greatest value.
        unit: unit of all three, such as ``ns``, ``ms``, ``levels`` or ``bool``.
        doc: what it does, one line.

    Source: the tag of the variable in the policy's object (``policies/include``).
    """

    name: str
    default: int
    min: int
    max: int
    unit: str
    doc: str


class Policy:
    """A scheduler: one compiled sched_ext object, with the knobs that are set in it.

    Args:
        policy: what the command line calls a policy: a built-in name (``"mlfq"``), the path of an
            object, of a C source, of a bundle or of a scheduler's binary; knobs may stand behind a
            colon (``"mlfq:queues=4"``). The file is read, and a source compiled, at once.

    Raises:
        UsageError: there is no such policy.
        Error: the file cannot be read or compiled.
    """

    __slots__ = ("_policy",)

    def __init__(self, policy: PolicyLike) -> None:
        if isinstance(policy, Policy):
            self._policy: _runslice.Policy = policy._policy
        else:
            self._policy = _runslice.Policy.named(os.fspath(policy))

    @classmethod
    def _of(cls, policy: _runslice.Policy) -> Policy:
        new = cls.__new__(cls)
        new._policy = policy
        return new

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "policy.bpf.o") -> Policy:
        """A policy whose file is in memory.

        Args:
            data: a BPF object, a bundle, or the binary of a scheduler.
            name: what the file would be called. Tables call the policy so, without the ending.

        Raises:
            Error: the bytes are none of these.
        """
        return cls._of(_runslice.Policy.of_bytes(name, data))

    @classmethod
    def from_source(cls, text: str, name: str = "policy.bpf.c") -> Policy:
        """A policy whose C source is in memory. It takes clang 16 or newer.

        Args:
            text: the source, which may include what a source of ``runslice build`` may.
            name: what the file would be called. Messages of the compiler name it.

        Raises:
            Error: there is no suitable clang, or the source does not compile; the message has the
                compiler's words.
        """
        return cls._of(_runslice.Policy.of_source(name, text))

    @classmethod
    def from_program(cls, command: str) -> Policy:
        """A scheduler's own program, as with ``--scheduler``: ``"scx_lavd --performance"``.

        It is started when it runs, needs no root, and attaches its policy to the simulated machine.
        It has your rights, so run only programs that you trust. Results have such policies last.

        Args:
            command: the program and its arguments, as in a shell.

        Raises:
            UsageError: there are no words, or a quote is not closed.

        Source: docs/your-scheduler.md.
        """
        return cls._of(_runslice.Policy.of_program(command))

    def set(self, knobs: Mapping[str, Value] | None = None, /, **more: Value) -> Policy:
        """The same policy with these knobs. Of two values for one knob the later one counts.

        Args:
            knobs: names and values, each in the unit and range that ``knobs`` states.
            more: the same, as arguments.

        Raises:
            UsageError: a name is none, or the policy is a scheduler's own program. Whether there is
                such a knob, and whether the value is in its range, is checked when the policy runs.
        """
        pairs = {**(knobs or {}), **more}
        return self._of(self._policy.with_knobs([(k, text_of(v)) for k, v in pairs.items()]))

    @property
    def name(self) -> str:
        """What tables call it, knobs included."""
        return self._policy.name

    @property
    def word(self) -> str:
        """What the command line calls it."""
        return self._policy.word

    @property
    def object(self) -> bytes:
        """The BPF object, byte for byte the file that a kernel loads; empty if a scheduler's own
        program brings it."""
        return self._policy.object

    @property
    def knobs(self) -> list[Knob]:
        """Its knobs, with the values that the object has.

        Raises:
            Error: it is no object that a simulated kernel takes.
        """
        return [Knob(*knob) for knob in self._policy.knobs()]

    def __repr__(self) -> str:
        return f"Policy({self.word!r})"


PolicyLike: TypeAlias = Union[str, "os.PathLike[str]", Policy]
"""A policy, or what the command line calls one."""


class Workload:
    """A load: which tasks run, and what they do. docs/workload.md describes the language.

    Args:
        workload: what the command line calls a workload: a built-in name (``"desk"``), or the path
            of a workload file, of an rt-app configuration or of a trace. It is read when it runs.
    """

    __slots__ = ("_load",)

    def __init__(self, workload: WorkloadLike) -> None:
        if isinstance(workload, Workload):
            self._load: _runslice.Load = workload._load
        else:
            self._load = _runslice.Load.named(os.fspath(workload))

    @classmethod
    def _of(cls, load: _runslice.Load) -> Workload:
        new = cls.__new__(cls)
        new._load = load
        return new

    @classmethod
    def from_recording(cls, path: str | os.PathLike[str]) -> Workload:
        """A recording that is rerun, as by ``--from``. docs/import.md says what is made of it.

        Args:
            path: the file of ``--events``, or a trace of perf, trace-cmd, ftrace or Perfetto. It is
                read when it runs.
        """
        return cls._of(_runslice.Load.recorded(os.fspath(path)))

    @classmethod
    def from_text(cls, text: str, name: str = "workload.toml") -> Workload:
        """A workload whose file is in memory.

        Args:
            text: what the file says.
            name: what it would be called; one in ``.json`` is a configuration of rt-app.

        Raises:
            Error: the text is wrong; the message has line and column.
        """
        return cls._of(_runslice.Load.of_text(name, text))

    @classmethod
    def build(
        cls,
        name: str,
        tasks: Mapping[str, str | Sequence[str] | Mapping[str, Any]],
        *,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        scale: Mapping[str, int] | None = None,
        machine: Mapping[str, Any] | None = None,
        **tables: Mapping[str, Any],
    ) -> Workload:
        """A workload from Python's values, table by table as in a workload file.

        Args:
            name: how tables call it.
            tasks: groups of tasks in the order in which they come to life. A value is what the
                tasks do, or the whole table of the group: ``{"do": [...], "count": 4}``.
            stop: when it ends, such as ``"duration:10s"``. Default: when every task has exited.
            seed: seed of its random choices. Default: 1.
            scale: parameters that expressions may use.
            machine: the machine that it is made for, such as ``{"cpus": 2}``.
            tables: other tables of the file by name, such as ``chan={"ping": {"kind": "pipe"}}``.

        Raises:
            Error: something in it is wrong; the message has line and column in ``.text``.

        Example::

            Workload.build(
                "pair",
                {"hog": "loop(inf)[ run(10ms) ]",
                 "ui": {"do": "loop(inf)[ sleep(10ms), run(1ms) ]", "nice": -5}},
                stop="duration:5s", machine={"cpus": 1},
            )
        """
        head: dict[str, Any] = {"name": name, "stop": stop, "seed": seed, "scale": scale}
        groups = {
            group: dict(what) if isinstance(what, Mapping) else {"do": what}
            for group, what in tasks.items()
        }
        document: dict[str, Any] = {"workload": head}
        if machine is not None:
            document["machine"] = machine
        document.update(tables)
        document["task"] = groups
        return cls.from_text(_toml(document), f"{name}.toml")

    @property
    def word(self) -> str:
        """What the command line calls it."""
        return self._load.word

    @property
    def text(self) -> str:
        """What its file says.

        Raises:
            UsageError: there is no such workload.
            UsageError: it is a recording.
            Error: it is a trace, or cannot be read.
        """
        return self._load.text()

    @property
    def name(self) -> str:
        """How tables call it."""
        return self._load.parameters()[0]

    @property
    def parameters(self) -> dict[str, int]:
        """Its parameters, which ``scale`` changes, with their values."""
        return dict(self._load.parameters()[1])

    def __repr__(self) -> str:
        return f"Workload({self.word!r})"


WorkloadLike: TypeAlias = Union[str, "os.PathLike[str]", Workload]
"""A workload, or what the command line calls one."""


def policies() -> dict[str, str]:
    """The built-in policies: names, and what each is in one sentence."""
    return dict(_runslice.policies())


def workloads() -> dict[str, str]:
    """The built-in workloads: names, and what each is in one sentence."""
    return dict(_runslice.workloads())


def text_of(value: Value) -> str:
    """A value as the command line takes it."""
    if not isinstance(value, (int, str)):
        raise TypeError(f"{value!r} is neither a whole number nor a truth value nor text")
    return str(int(value)) if isinstance(value, bool) else str(value)


def _toml(tables: Mapping[str, Any]) -> str:
    """A TOML document of tables and of tables of tables."""
    lines: list[str] = []

    def put(path: str, table: Mapping[str, Any]) -> None:
        plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
        inner = {k: v for k, v in table.items() if isinstance(v, Mapping)}
        if plain or not inner:
            lines.append(f"[{path}]")
            lines.extend(f"{json.dumps(key)} = {_value(value)}" for key, value in plain.items())
            lines.append("")
        for key, value in inner.items():
            put(f"{path}.{json.dumps(key)}", value)

    for name, table in tables.items():
        put(json.dumps(name), table)
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    # A string of JSON is one of TOML, and so are numbers and truth values.
    return json.dumps(value, ensure_ascii=False)
