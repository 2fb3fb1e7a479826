"""What is told of pipelines and tokens, in Feldera's words. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.manifest.reading import parse_manifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes import Outcome
from waybill_status.core.pipelines import PipelineDetail, PipelineSummary
from waybill_status.core.progress import PipelineProgress

OUTCOME: Final = TypeAdapter(Outcome)
EDITION: Final = "Open source"
SPOKEN: Final = "0.369.0"
"""The version of Feldera whose clients these answers are for."""
STATUS: Final[Mapping[str, str]] = {
    Phase.CREATED: "Provisioning",
    Phase.SCHEDULING: "Provisioning",
    Phase.STARTING: "Initializing",
    Phase.RUNNING: "Running",
    Phase.RECOVERING: "Initializing",
    Phase.STOPPING: "Stopping",
    Phase.STOPPED: "Stopped",
    Phase.FAILED: "Stopped",
    Phase.UNKNOWN: "Unavailable",
}


def config() -> dict[str, Any]:
    return {
        "edition": EDITION,
        "version": SPOKEN,
        "telemetry": "",
        "revision": "",
        "runtime_revision": "",
        "changelog_url": "",
        "license_validity": None,
        "update_info": None,
    }


def status_of(summary: PipelineSummary) -> dict[str, Any]:
    return {
        "id": summary.uid,
        "name": summary.name,
        "description": "",
        "version": summary.generation,
        "program_version": summary.generation,
        "program_status": "Success",
        "storage_status": "Cleared",
        "deployment_status": STATUS[summary.phase],
        "deployment_desired_status": "Running" if _is_wanted(summary) else "Stopped",
        "deployment_error": None,
    }


def _is_wanted(summary: PipelineSummary) -> bool:
    """Its client waits for what is wanted; of what has failed nothing comes by itself."""
    return summary.desired == "running" and summary.phase != Phase.FAILED


def status_in_full(detail: PipelineDetail) -> dict[str, Any]:
    """With the error that stopped it, and its tables and sinks."""
    told = status_of(detail)
    if detail.error is not None and detail.phase != Phase.RUNNING:
        told["deployment_error"] = {
            "message": detail.error.message,
            "error_code": f"{detail.error.domain.capitalize()}Error",
            "details": {"hint": detail.error.hint},
        }
    inputs = [
        _relation(source.name, [(c.name, c.type, c.required) for c in source.parsed_columns()])
        for source in parse_manifest(detail.manifest).inputs
    ]
    outputs = [_relation(sink.name, []) for stage in detail.stages for sink in stage.sinks]
    return {
        **told,
        "program_code": detail.manifest,
        "program_config": {},
        "runtime_config": {},
        "udf_rust": "",
        "udf_toml": "",
        "program_info": {"schema": {"inputs": inputs, "outputs": outputs}},
    }


def _relation(name: str, columns: Iterable[tuple[str, str, bool]]) -> dict[str, Any]:
    fields = [
        {
            "name": column,
            "case_sensitive": True,
            "columntype": {"type": kind, "nullable": not required},
        }
        for column, kind, required in columns
    ]
    return {"name": name, "case_sensitive": False, "materialized": False, "fields": fields}


def stats_of(summary: PipelineSummary, progress: PipelineProgress) -> dict[str, Any]:
    written, arrived = progress.written, progress.arrived
    return {
        "global_metrics": {
            "state": STATUS[summary.phase],
            "incarnation_uuid": progress.uid,
            "start_time": progress.created_at // 1_000,
            "transaction_status": "NoTransaction",
            "pipeline_complete": progress.complete,
            "total_input_records": written,
            "buffered_input_records": written - arrived,
            "total_processed_records": arrived,
            "total_completed_records": arrived,
        },
        "suspend_error": None,
        "inputs": [
            {
                "endpoint_name": each.name,
                "config": {"stream": each.name},
                "metrics": {
                    "total_records": each.written,
                    "buffered_records": each.written - each.arrived,
                    "num_transport_errors": 0,
                    "num_parse_errors": 0,
                    "end_of_input": False,
                },
                "paused": False,
                "barrier": False,
                "fatal_error": None,
            }
            for each in progress.inputs
        ],
        "outputs": [],
    }


def completion_of(outcome: Outcome) -> dict[str, Any]:
    """Raises what is final and not complete: in Feldera's words that would be in progress."""
    match outcome.outcome:
        case OutcomeKind.COMPLETE | OutcomeKind.IN_PROGRESS:
            complete = outcome.outcome is OutcomeKind.COMPLETE
            steps = [stage.batch for stage in outcome.stages if stage.batch is not None]
            return {
                "status": "complete" if complete else "inprogress",
                "step": max(steps, default=0 if complete else None),
            }
        case OutcomeKind.DEAD_LETTERED:
            detail = f"{outcome.dead_count} records of the token are dead letters"
            raise Refusal(Slug.RECORDS_DEAD_LETTERED, detail, **_told(outcome))
        case OutcomeKind.LOST:
            detail = "records of the token are lost: they will never arrive"
            raise Refusal(Slug.RECORDS_LOST, detail, **_told(outcome))
        case _:
            detail = f"nobody can judge the token now: {outcome.reason}"
            raise Refusal(Slug.OUTCOME_UNKNOWN, detail, reason=outcome.reason)


def _told(outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = OUTCOME.dump_python(outcome, mode="json", include={"dead", "lost"})
    return told
