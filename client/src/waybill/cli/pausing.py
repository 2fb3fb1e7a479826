"""The commands that pause a pipeline and let it continue."""

from waybill.cli.changes import change
from waybill.cli.phase_view import DRIVER_WAIT_S
from waybill.cli.render import Form, OutputOption
from waybill.cli.session import PipelineArgument, TimeoutOption, WaitOption


def pause(
    name: PipelineArgument,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Pause a pipeline: the running batch ends, and no other begins.

    Its driver stays, so `waybill resume` lets it continue at once. Records are accepted meanwhile,
    and their tokens say blocked_by: paused. A pipeline that is changed, or that gets another
    driver, stays paused.

    \b
    Example:
      waybill pause orders
      waybill resume orders

    \b
    Exit codes: 0 paused, or accepted · 1 error, also when it does not run ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """
    change(lambda client: client.pause(name), timeout, output, must_end=wait)


def resume(
    name: PipelineArgument,
    wait: WaitOption = False,  # noqa: FBT002 - a flag of the command line
    timeout: TimeoutOption = DRIVER_WAIT_S,
    output: OutputOption = Form.TABLE,
) -> None:
    """Let a paused pipeline continue, with the batch that comes next.

    \b
    Example:
      waybill resume orders && waybill wait orders

    \b
    Exit codes: 0 it runs, or accepted · 1 error, also when it is not paused ·
      4 not done in time: with --wait, or where the change cannot be remembered
    """
    change(lambda client: client.resume(name), timeout, output, must_end=wait)
