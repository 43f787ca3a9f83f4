"""Carries out a plan's steps one after the other, remembers what is done, and goes on where it was."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from argus_edge.artifacts import host_errors, read_file, sha256_file, write_text
from argus_edge.errors import GateFailedError, GateUndecidedError, HostError, InputError
from argus_edge.pipeline.children import call_and_wait
from argus_edge.pipeline.plan import Plan, Step, slug, steps_of
from argus_edge.text import pasted

LEDGER = "steps.json"
MEASURING = ("export", "bench", "eval")
State = Literal["done", "kept", "failed", "left out"]
VERDICTS = {GateFailedError.exit_code: "failed", GateUndecidedError.exit_code: "cannot decide"}


@dataclass
class Outcome:
    """What became of a plan."""

    states: dict[str, State] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """A failed gate's code, else the first failure's, else an undecided gate's, else 0."""
        verdicts = [code for code in self.codes.values() if code in VERDICTS]
        failures = [code for code in self.codes.values() if code and code not in VERDICTS]
        if GateFailedError.exit_code in verdicts:
            return GateFailedError.exit_code
        return next(iter(failures), next(iter(verdicts), 0))


Run = Callable[[Sequence[str], Path | None], int]
Tell = Callable[[str], None]


def run_command(argv: Sequence[str], log: Path | None) -> int:
    """Run ``argus-edge`` with the arguments in a process of its own, and return its exit code.

    A process of its own gives the exporter's memory back before a bench begins, and one that is killed takes nothing
    with it. What it prints goes to ``log``, where there is one; its progress stays on the terminal.
    """
    command = [sys.executable, "-m", "argus_edge", *argv]
    if log is None:
        return call_and_wait(command)
    with host_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as output:
            return call_and_wait(command, output)


def log_of(plan: Plan, step: Step) -> Path | None:
    """Return where a step's words go: a measurement's to a file, a decision's to the terminal."""
    return plan.out / "logs" / f"{slug(step.name)}.txt" if step.argv[0] in MEASURING else None


def command_line(step: Step) -> str:
    """Return a step's command as one types it."""
    return shlex.join(["argus-edge", *step.argv])


def _key(step: Step, before: dict[str, str], out: Path) -> str:
    """Return what a step depends on: its arguments, the outputs of the steps before it, and the user's files."""
    needs = [before.get(name, "") for name in step.needs]
    reads = [_fingerprint(path, out) for path in step.reads]
    return hashlib.sha256(json.dumps([step.argv, needs, reads]).encode()).hexdigest()


def _fingerprint(path: Path, out: Path) -> str:
    """Return a file's hash; of a folder that of its files' names, sizes and times, since reading all takes minutes.

    What lies under ``out``, the plan's own output, is no input.
    """
    if path.is_file():
        return sha256_file(path)
    if not path.is_dir():
        return ""
    digest = hashlib.sha256()
    with host_errors(path):
        for each in sorted(path.rglob("*")):
            if each.is_file() and not each.is_relative_to(out):
                known = each.stat()
                digest.update(
                    f"{each.relative_to(path)}\0{known.st_size}\0{known.st_mtime_ns}\n".encode(errors="replace")
                )
    return digest.hexdigest()


def _read_ledger(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    try:
        ledger = json.loads(read_file(path, limit=1 << 24))
    except (ValueError, RecursionError):
        ledger = None
    readable = isinstance(ledger, dict) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("key"), str)
        and isinstance(entry.get("output"), str)
        and str(entry.get("code", "0")).isdecimal()
        for entry in ledger.values()
    )
    if not readable:
        raise InputError(
            "The record of finished steps cannot be read.",
            where=str(path),
            next_step=f"delete it to start anew: rm {pasted(path)}",
        )
    return dict(ledger)


def run_plan(plan: Plan, *, run: Run = run_command, tell: Tell = lambda _: None) -> Outcome:
    """Carry out a plan.

    Parameters
    ----------
    plan
        What to do.
    run
        Runs one command, whose words go to a file where one is given, and returns its exit code.
    tell
        Called with a line for the user before and after each step.

    Notes
    -----
    A step is kept when its arguments, the outputs it was made from and its own output are what they were. One that
    fails leaves out what needs it; all others go on.
    """
    ledger_path = plan.out / LEDGER
    ledger = _read_ledger(ledger_path)
    outcome = Outcome()
    hashes: dict[str, str] = {}
    steps = steps_of(plan)
    for number, step in enumerate(steps, start=1):
        head = f"[{number}/{len(steps)}] {step.name}"
        missing = [name for name in step.needs if outcome.states.get(name) not in ("done", "kept")]
        if missing and (not step.tolerant or len(missing) == len(step.needs)):
            outcome.states[step.name] = "left out"
            tell(f"{head}: left out, since {missing[0]} did not succeed")
            continue
        key = _key(step, hashes, plan.out)
        known = ledger.get(step.name)
        if known and known["key"] == key and step.output.exists() and sha256_file(step.output) == known["output"]:
            outcome.states[step.name] = "kept"
            outcome.codes[step.name] = int(known.get("code", "0"))
            hashes[step.name] = known["output"]
            tell(f"{head}: done before")
            continue
        tell(f"{head}\n  {command_line(step)}")
        log = log_of(plan, step)
        begun = time.monotonic()
        code = run(step.argv, log)
        if code == 130:
            raise KeyboardInterrupt
        finished = code == 0 or (step.gate and code in VERDICTS)
        outcome.codes[step.name] = code
        if finished and not step.output.exists():
            raise HostError(f"{step.name} ended well but left no output.", where=str(step.output))
        outcome.states[step.name] = "done" if finished else "failed"
        if finished:
            hashes[step.name] = sha256_file(step.output)
            ledger[step.name] = {"key": key, "output": hashes[step.name], "code": str(code)}
            write_text(ledger_path, json.dumps(ledger, indent=1) + "\n")
        state = "done" if finished else f"failed with exit code {code}"
        tell(f"{head}: {state} after {time.monotonic() - begun:.0f} s" + (f"; {log}" if log else ""))
    return outcome
