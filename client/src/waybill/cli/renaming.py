"""The command that calls a pipeline otherwise."""

from typing import Annotated

import typer

from waybill.cli.changes import change
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, WaitOption


def rename(
    name: PipelineArgument,
    new: Annotated[str, typer.Argument(help="what the pipeline is called from now on")],
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Call a pipeline otherwise; tokens, fences and offsets stay.

    The running batch ends; then the pipeline continues under the new name. One that is stopped,
    paused or failed stays so. Its former names still count in tokens and in `--through`; elsewhere
    they are refused with the new one, and no other pipeline gets them. In the file of its manifest,
    change `name`; `was: OLD` there does the same as this command, together with other changes.

    \b
    Example:
      waybill rename orders sales

    \b
    Exit codes: 0 it is called so, or accepted · 1 error · 2 usage ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """

    change(lambda client: client.rename(name, new), timeout, output, must_end=wait)
