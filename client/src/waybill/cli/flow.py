"""How far one pipeline is and how much of it died, as Waybill counts it for all who ask."""

from contextlib import closing

from waybill import questions
from waybill.cli.session import direct
from waybill.errors import WaybillError
from waybill.flows import PipelineFlow, flows_in

TIMEOUT_S = 5.0


def flow_of(pipeline: str) -> PipelineFlow | None:
    """Ask for it. It is good to know, never needed: an error of this question is none of the
    command, and gives None, as does a pipeline of which nothing can be said now."""
    try:
        with closing(direct(TIMEOUT_S)) as connection:
            flows = flows_in(connection.ask(questions.flow()))
    except WaybillError:
        return None
    return next((each for each in flows if each.name == pipeline and each.reason is None), None)
