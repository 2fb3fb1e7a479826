"""The commands about API keys: `keys new`, `keys list`, `keys revoke`.

They change the file that the services read, so they run where that file is; no service is asked.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import command_group
from waybill.errors import WaybillError

FILE_VARIABLE = "WAYBILL_API_KEYS_FILE"
ENV = re.compile("[a-z0-9]{1,16}")
HEADER = ("ID", "NAME", "ENV", "SCOPES", "CREATED", "EXPIRES")


class KeyScope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


keys = command_group("Make, list and revoke the API keys that the services ask for.")


def _env(value: str) -> str:
    if not ENV.fullmatch(value):
        raise typer.BadParameter(f"{value!r} is not 1 to 16 of a-z and 0-9")
    return value


FileOption = Annotated[
    Path,
    typer.Option("--file", metavar="FILE", envvar=FILE_VARIABLE, help="the services' keys file"),
]
ScopeOption = Annotated[
    list[KeyScope],
    typer.Option(
        "--scope",
        case_sensitive=False,
        help="read (outcomes, pipelines), write (records, tokens) or admin (pipelines and their"
        " life); repeat it for several, none includes another",
    ),
]
EnvOption = Annotated[
    str, typer.Option("--env", callback=_env, help="the word after wb_, for people to see")
]
DaysOption = Annotated[
    int | None, typer.Option("--days", min=1, help="how long it is good; without: until revoked")
]


@keys.command("new")
def new(
    scope: ScopeOption,
    file: FileOption,
    name: Annotated[str, typer.Option("--name", help="who or what uses it")] = "",
    env: EnvOption = "dev",
    days: DaysOption = None,
) -> None:
    """Make a key, print it, and add its hash to the keys file.

    The key is printed on stdout, only this once: the file keeps only its hash. Only the owner can
    read the file; running services see the key within a second. They serve addresses other than
    loopback only with such a file, and then ask everyone for a key.

    \b
    Example:
      waybill keys new --scope write --scope read --name shop --file keys/api_keys.json
      curl -H "Authorization: Bearer $KEY" "$WAYBILL_URL/v1/pipelines"

    Exit codes: 0 made · 1 error · 2 usage
    """
    with _key_file():
        from waybill_shared.access.api_keys import add_key
        from waybill_shared.contract.routes import Scope
        from waybill_shared.process.clock import SystemClock

        text, made = add_key(
            file,
            frozenset(map(Scope, scope)),
            env=env,
            now=datetime.fromtimestamp(SystemClock().now_ms() // 1000, UTC),
            name=name,
            life=timedelta(days=days) if days else None,
        )
    render.talk(f"key {made.id} is in {file} as a hash; it is not shown again")
    render.data([text])


@keys.command("list")
def list_keys(file: FileOption, output: OutputOption = Form.TABLE) -> None:
    """List the keys of the file: what they may do, and until when.

    \b
    Example:
      waybill keys list --file keys/api_keys.json

    Exit codes: 0 ok · 1 error · 2 usage
    """
    with _key_file():
        from waybill_shared.access.api_keys import read_keys

        found = read_keys(file).keys
    if output is Form.JSON:
        shown = {"id", "name", "env", "scopes", "created_at", "expires_at"}
        render.as_json([key.model_dump(mode="json", include=shown) for key in found])
        return
    rows = [
        (
            key.id,
            key.name,
            key.env,
            ",".join(sorted(key.scopes)),
            key.created_at.isoformat(),
            key.expires_at.isoformat() if key.expires_at else "never",
        )
        for key in found
    ]
    render.data(render.table(rows, header=HEADER))


@keys.command("revoke")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="as `waybill keys list` shows it")],
    file: FileOption,
) -> None:
    """Delete a key from the file: services refuse it within a second.

    \b
    Example:
      waybill keys revoke 3f9c0a1b2c3d --file keys/api_keys.json

    Exit codes: 0 revoked · 1 there is no such key, or another error · 2 usage
    """
    with _key_file():
        from waybill_shared.access.api_keys import revoke_key

        revoked = revoke_key(file, id)
    if not revoked:
        raise WaybillError(f"{file} has no key {id}: `waybill keys list` shows those it has")
    render.talk(f"key {id} is revoked")


@contextmanager
def _key_file() -> Iterator[None]:
    """Check that the services' package is there, and raise its errors as those of the client."""
    if find_spec("waybill_shared") is None:
        raise WaybillError(
            "keys are made where the services are installed: pip install 'waybill-client[local]'"
        )
    from waybill_shared.contract.errors import UserError

    try:
        yield
    except UserError as error:
        hints = "; ".join(problem.hint for problem in error.problems if problem.hint)
        raise WaybillError(f"{error}: {hints}" if hints else str(error)) from error
    except OSError as error:
        raise WaybillError(f"{error.filename}: {error.strerror}") from error
