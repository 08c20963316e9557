"""Runs conversions in forked children in which one system call fails, and judges what is left."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
from collections import Counter, namedtuple
from pathlib import Path
from typing import Any

from raconvert.errors import RaconvertError

from .cases import CASES, Case, convert, make_sources, prepare, read

KINDS = {"ENOSPC": 1, "EIO": 2, "short": 3, "kill before": 4, "kill after": 5}
# One fault: in which case, over an old destination or not, at which call, of which kind.
Fault = namedtuple("Fault", "case old at kind")
Outcome = namedtuple("Outcome", "how call text")
# Removing is tried once: what cannot be removed stays, under a name that says what it is.
REMOVALS = {"unlink", "unlinkat", "rmdir"}


class Engine:
    """The folders of a run: sources, what each case makes of them, and where it is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shim = ctypes.CDLL(None)
        self.shim.fault_call.restype = ctypes.c_char_p
        self.shim.fault_disarm.restype = ctypes.c_long
        self.sources = [folder / "old", folder / "new"]
        for run, place in enumerate(self.sources):
            make_sources(place, run)
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.before: dict[tuple[str, bool], dict[str, bytes]] = {}
        self.whole: dict[tuple[str, bool], dict[str, bytes]] = {}

    def calls(self, case: Case, old: bool) -> int:
        """Run a case without any fault; return the number of calls, and keep what it wrote."""
        place = self._arrange(case, old)
        self.before[case.name, old] = contents(place)[0]
        outcome = self._run(case, place, old, 0, 0)
        if outcome.how != "done":
            raise RuntimeError(f"{case.name} fails without a fault: {outcome}")
        self.whole[case.name, old], left = contents(place)
        if left:
            raise RuntimeError(f"{case.name} leaves {left} without a fault")
        return int(outcome.text)

    def _arrange(self, case: Case, old: bool) -> Path:
        template = self.folder / f"{case.name}-{'before' if old else 'without'}"
        if not template.exists():
            template.mkdir()
            here = os.getcwd()
            os.chdir(template)
            prepare(case)
            if old:
                convert(case, self.sources[0], 0)
            os.chdir(here)
        place = self.folder / "here"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(template, place, symlinks=True)
        return place

    def _run(self, case: Case, place: Path, old: bool, at: int, kind: int) -> Outcome:
        answers, answer = os.pipe()
        child = os.fork()
        if not child:
            os.close(answers)
            try:
                os.write(answer, json.dumps(self._child(case, place, old, at, kind)).encode())
            finally:
                os._exit(0)
        os.close(answer)
        with os.fdopen(answers, "rb") as file:
            told = file.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            how = "killed" if os.WTERMSIG(status) == signal.SIGKILL else "crashed"
            return Outcome(how, "", signal.Signals(os.WTERMSIG(status)).name)
        return Outcome(*json.loads(told or b'["crashed", "", "no answer"]'))

    def _child(
        self, case: Case, place: Path, old: bool, at: int, kind: int
    ) -> tuple[str, str, str]:
        os.chdir(place)
        self.shim.fault_arm(ctypes.c_long(at), kind)
        try:
            failed = convert(case, self.sources[1], 1, overwrite=old)
            how, text = "done", ""
            if failed:  # of one file for each source the others are there
                how, text = "part", f"{type(failed[0][1]).__name__}: {failed[0][1]}"
        except RaconvertError as error:
            how, text = "error", f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            how, text = "bug", f"{type(error).__name__}: {error}"
        count = self.shim.fault_disarm()
        call = (self.shim.fault_call() or b"").decode()
        return how, call, text if at else str(count) if how == "done" else text

    def judge(self, fault: Fault) -> tuple[Outcome, str]:
        """Inject a fault; return what became of it, and what is wrong with that, if anything."""
        place = self._arrange(fault.case, fault.old)
        outcome = self._run(fault.case, place, fault.old, fault.at, KINDS[fault.kind])
        now, left = contents(place)
        key = fault.case.name, fault.old
        each = {name: {self.before[key].get(name), self.whole[key].get(name)} for name in now}
        sound = all(now[name] in known for name, known in each.items())
        if outcome.how == "part" and sound and "WriteFailed" in outcome.text and not left:
            return outcome, ""
        state = "old" if now == self.before[key] else "new" if now == self.whole[key] else "mixed"
        return outcome, self._wrong(fault, outcome, state, left, place)

    def _wrong(
        self, fault: Fault, outcome: Outcome, state: str, left: list[str], place: Path
    ) -> str:
        if outcome.how in ("bug", "crashed"):
            return f"{outcome.how}: {outcome.text}"
        if left and outcome.how != "killed" and outcome.call not in REMOVALS:
            return f"leaves {left} after {outcome.how} {outcome.text}"
        if outcome.how == "done" and state == "new":
            return ""
        if outcome.how == "error" and (
            state == "old" or "new data is in its place" in outcome.text
        ):
            return "" if "written" in outcome.text or "remove" in outcome.text else outcome.text
        if outcome.how == "killed" and (state != "mixed" or self._noticed(fault.case, place)):
            return ""
        return f"{outcome.how}, but what is there is {state}: {outcome.text}"

    def _noticed(self, case: Case, place: Path) -> bool:
        """True if reading refuses what a kill has left."""
        here = os.getcwd()
        os.chdir(place)
        try:
            read(case, str(self.scratch))
        except RaconvertError:
            return True
        finally:
            os.chdir(here)
        return False


def contents(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files below a folder with their bytes, and the temporary ones among them."""
    found: dict[str, bytes] = {}
    left = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".raconvert-") and part.endswith(".tmp") for part in parts):
            left.append("/".join(parts))
        else:
            found["/".join(parts)] = (
                os.fsencode(os.readlink(path)) if path.is_symlink()
                else b"" if path.is_dir() else path.read_bytes()
            )  # fmt: skip
    return found, left


def all_faults(engine: Engine, names: list[str]) -> list[Fault]:
    """Return every fault: each kind, at each call, of each case, with and without an old one."""
    faults = []
    for case in CASES:
        for old in (True, False) if not names or case.name in names else ():
            count = engine.calls(case, old)
            faults += [Fault(case, old, at, kind) for at in range(1, count + 1) for kind in KINDS]
    return faults


def run(folder: Path, sample: int, names: list[str]) -> dict[str, Any]:
    """Inject faults; return how many, what became of them, and those that went wrong."""
    engine = Engine(folder)
    faults = all_faults(engine, names)
    step = max(1, len(faults) / sample) if sample else 1
    chosen = [faults[int(number * step)] for number in range(int(len(faults) / step))]
    outcomes: Counter[str] = Counter()
    wrong = []
    for fault in chosen:
        outcome, problem = engine.judge(fault)
        outcomes[outcome.how] += 1
        if problem:
            old = "old" if fault.old else "new"
            wrong.append(
                f"{fault.case.name} ({old}), call {fault.at} {outcome.call}, {fault.kind}: {problem}"
            )
    return {
        "possible": len(faults),
        "injected": len(chosen),
        "cases": len({(fault.case.name, fault.old) for fault in chosen}),
        "outcomes": dict(outcomes),
        "wrong": wrong,
    }
