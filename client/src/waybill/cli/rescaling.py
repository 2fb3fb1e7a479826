"""The command that sets how many tasks of a pipeline run at once."""

from typing import Annotated

import typer

from waybill.cli.changes import change
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, WaitOption


def rescale(
    name: PipelineArgument,
    parallelism: Annotated[int, typer.Argument(min=1, help="how many of its tasks run at once")],
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Set how many tasks of a pipeline run at once, until a manifest changes its parallelism.

    The running batch ends; then the pipeline continues in a driver of that size. Rows and tokens
    stay as they are. A paused pipeline stays paused. If the pipeline is stopped, finished or
    failed, the number is for its next start. The operator sets how many are allowed.

    \b
    Example:
      waybill rescale orders 4

    \b
    Exit codes: 0 it runs so, or accepted · 1 error · 2 usage ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """
    change(lambda client: client.rescale(name, parallelism), timeout, output, must_end=wait)
