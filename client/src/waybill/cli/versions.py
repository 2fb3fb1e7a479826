"""The command `version`: of this client, and of each service that answers."""

from waybill.cli import render
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import VERSION_TIMEOUT_S, direct
from waybill.errors import WaybillError
from waybill.fields import Fields
from waybill.questions import Question
from waybill.version import client_version

SILENT = "no answer"


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
    render.data(render.table([(name, told or SILENT) for name, told in servers.items()]))
    if error is not None:
        render.talk(f"no service tells its version: {error}")


def _servers() -> dict[str, str | None]:
    """By service; None of one that the gateway has no answer of."""
    connection = direct(VERSION_TIMEOUT_S)
    try:
        answer = connection.ask(Question(method="GET", path="/version"))
    finally:
        connection.close()
    services = answer.object_or_none("services") or Fields({}, "no services")
    found: dict[str, str | None] = {answer.text("service"): answer.text("version")}
    for name in services.raw:
        member = services.object_or_none(name)
        found[name] = None if member is None else member.text_or_none("version")
    return found
