"""How far one pipeline is and how many dead letters it has, as Waybill counts it for everyone."""

from contextlib import closing

from waybill import questions
from waybill.cli.session import direct
from waybill.errors import WaybillError
from waybill.flows import PipelineFlow, flows_in

TIMEOUT_S = 5.0


def flow_of(pipeline: str) -> PipelineFlow | None:
    """Return the flow of the pipeline, or None if nothing is known of it now.

    It is good to know, but never needed: an error of this question is no error of the command.
    """
    try:
        with closing(direct(TIMEOUT_S)) as connection:
            flows = flows_in(connection.ask(questions.flow()))
    except WaybillError:
        return None
    return next((each for each in flows if each.name == pipeline and each.reason is None), None)
