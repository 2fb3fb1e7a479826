"""Why runs of pipelines end: the words of answers, and the reasons of phases that mean them."""

from typing import Final

from waybill_shared.contract.word import Word

READ_ALL: Final = "all that there was is read"
"""The reason of a phase in which a run has finished."""
NEXT_RUN: Final = "the next run begins"
"""The same, if a start came meanwhile."""
TO_BE: Final = "to be "
"""How the reason of a stop begins that a person asked for."""


class RunEnd(Word):
    """Why a run of a pipeline has ended.

    `end` of a run.
    """

    STOPPED = "stopped", "a person has stopped or deleted the pipeline: `ended_by`"
    SUPERSEDED = "superseded", "a change, a restart or a rescale needed another driver: `ended_by`"
    FINISHED = "finished", "it has read all that there was"
    FAILED = "failed", "a fault of the manifest, the data or another system has ended it: `error`"
    CRASHED = "crashed", "a fault of Waybill or of the machine has ended it: `error`"
    TAKEN_OVER = (
        "taken_over",
        "another runner has the pipeline now, and when the driver ended was not written down",
    )


class DegradedCause(Word):
    """Why a pipeline is degraded.

    `cause` in `conditions` of a pipeline, and of `waybill_pipeline_degraded`.
    """

    DRIVER_SILENT = "driver_silent", "its driver has reported nothing for five minutes"
    NO_PROGRESS = "no_progress", "a batch has done nothing for ten times its usual length"
    SINK_WAITS = "sink_waits", "a batch has waited only for a sink for ten times its usual length"
    BATCH_LONG = "batch_long", "a batch has run for ten times its usual length, and goes on"
    NO_COMMIT = "no_commit", "records wait, and five times the usual pause had no commit"
    STAGE_FAILED = "stage_failed", "a stage has failed, and does not start again by itself"
    RETRYING = "retrying", "its driver has failed three times or more, one after the other"
