"""Draws the phases of a pipeline from their table.

Prints docs/lifecycle.md; decides nothing about phases.
"""

from waybill_shared.contract.lifecycle import HEARTBEAT_AGE_MS_MAX, TRANSITIONS, Phase

INTRODUCTION = f"""# The life of a pipeline

<!-- Made by `python -m waybill_shared.tools.lifecycle_diagram > docs/lifecycle.md`. Change
     `TRANSITIONS` in `waybill_shared.contract.lifecycle`, not this file. -->

What a person wants (`running`, `stopped`, `deleted`) stands in `waybill.pipelines`. The phase says
what is so. `stage_runner` alone decides it, in `core.supervision.decide`, and writes every move to
`waybill.lifecycle`. `{Phase.UNKNOWN}` is never entered: readers say it when the runner has been
silent for {HEARTBEAT_AGE_MS_MAX // 1000} s. A pipeline that is to be deleted, or of which a stage
or sink is to be removed, is `{Phase.STOPPING}` until what goes has been asked a last time what it
holds; only then the change is said. If that cannot be, the change is refused, and the pipeline goes
on as it was.

A driver that failed is started again after 0.5 s, doubling to 60 s, and anew after two healthy
minutes. Where the outside world was the cause (Kafka, a catalog, a Spark cluster) that has no end:
everything goes on by itself when it is back. Other failures are tried 20 times, and what a person
must mend not once: then the pipeline is `{Phase.FAILED}`. The same holds for the driver that closes
what goes, but that a deletion is finished after 20 crashes, with an error in the runner's log.
"""


def render() -> str:
    """The whole document."""
    moves = [
        f"    {phase} --> {after}"
        for phase in Phase
        for after in Phase
        if after in TRANSITIONS[phase]
    ]
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.CREATED}", *moves]
    return "\n".join([INTRODUCTION, "```mermaid", *lines, "```", ""])


if __name__ == "__main__":
    print(render(), end="")
