"""The command `version`: of this client, and of each service that answers."""

from contextlib import closing

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.services import SILENT, read_versions
from waybill.cli.session import ASK_TIMEOUT_S, direct
from waybill.errors import WaybillError
from waybill.version import client_version


def version(output: OutputOption = Form.TABLE) -> None:
    """Print the version of this client, and of each service that answers.

    \b
    Example:
      waybill version
      waybill version -o json | jq .servers

    Exit codes: 0 ok, also when no service answers
    """
    servers: dict[str, str | None] = {}
    error = None
    try:
        servers = _servers()
    except WaybillError as silence:
        error = str(silence)
    if output is Form.JSON:
        render.as_json({"client": client_version(), "servers": servers, "error": error})
        return
    render.data([f"waybill {client_version()}"])
    render.data(render.table([(name, version or SILENT) for name, version in servers.items()]))
    if error is not None:
        render.talk(f"no service answers with its version: {error}")


def _servers() -> dict[str, str | None]:
    with closing(direct(ASK_TIMEOUT_S)) as connection:
        return read_versions(connection)
