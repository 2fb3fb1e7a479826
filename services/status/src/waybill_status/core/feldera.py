"""Describes pipelines and tokens in the words of Feldera. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from waybill_shared.contract.connector_view import ConnectorDetail, no_connector
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.names import name_meant
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names
from waybill_shared.contract.words import ConnectorState, OutcomeKind
from waybill_status.core import feldera_answers as answers
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.pipelines.answers import PipelineDetail, PipelineSummary
from waybill_status.core.pipelines.progress import PipelineProgress

OUTCOME: Final = TypeAdapter(Outcome)
STATUS: Final[Mapping[str, str]] = {
    Phase.CREATED: "Provisioning",
    Phase.SCHEDULING: "Provisioning",
    Phase.STARTING: "Initializing",
    Phase.RUNNING: "Running",
    Phase.PAUSED: "Paused",
    Phase.RECOVERING: "Initializing",
    Phase.RESCALING: "Initializing",
    Phase.RESTARTING: "Initializing",
    Phase.DRAINING: "Stopping",
    Phase.CHECKPOINT_STOPPING: "Stopping",
    Phase.STOPPING: "Stopping",
    Phase.STOPPED: "Stopped",
    Phase.FINISHING: "Stopping",
    Phase.FINISHED: "Stopped",
    Phase.FAILED: "Stopped",
    Phase.UNKNOWN: "Unavailable",
}
DESIRED: Final[Mapping[str, str]] = {"running": "Running", "paused": "Paused"}


def status_of(summary: PipelineSummary) -> answers.FelderaStatus:
    return answers.FelderaStatus(**_status(summary))


def _status(summary: PipelineSummary) -> dict[str, Any]:
    return {
        "id": summary.uid,
        "name": summary.name,
        "version": summary.generation,
        "program_version": summary.generation,
        "deployment_status": STATUS[summary.phase],
        "deployment_desired_status": _desired(summary),
    }


def _desired(summary: PipelineSummary) -> str:
    """Return what the pipeline will be. Feldera's client waits for the desired status, and a
    pipeline that has failed or finished does not start by itself."""
    rests = summary.phase in {Phase.FAILED, Phase.FINISHING, Phase.FINISHED}
    return "Stopped" if rests else DESIRED.get(summary.desired, "Stopped")


def status_in_full(detail: PipelineDetail, manifest: Manifest) -> answers.FelderaPipeline:
    """Return the status with the error that stopped the pipeline, and with its tables and sinks."""
    inputs = [
        _relation(source.name, [(c.name, c.type, c.required) for c in source.list_columns()])
        for source in manifest.inputs
    ]
    outputs = [_relation(sink.name, []) for stage in detail.stages for sink in stage.sinks]
    return answers.FelderaPipeline(
        **_status(detail),
        deployment_error=_error(detail),
        program_code=detail.manifest,
        program_info=answers.ProgramInfo(
            schema=answers.ProgramSchema(inputs=inputs, outputs=outputs)
        ),
    )


def _error(detail: PipelineDetail) -> answers.DeploymentError | None:
    if detail.error is None or detail.phase == Phase.RUNNING:
        return None
    return answers.DeploymentError(
        message=detail.error.message,
        error_code=f"{detail.error.domain.capitalize()}Error",
        details={"hint": detail.error.hint},
    )


def _relation(name: str, columns: Iterable[tuple[str, str, bool]]) -> answers.Relation:
    fields = [
        answers.FelderaColumn(
            name=column, columntype=answers.ColumnType(type=kind, nullable=not required)
        )
        for column, kind, required in columns
    ]
    return answers.Relation(name=name, fields=fields)


def stats_of(detail: PipelineDetail, progress: PipelineProgress) -> answers.FelderaStats:
    """Return the numbers. `detail` is older than `progress`, so what a finished connector has
    written is in it."""
    written, arrived = progress.written, progress.arrived
    connectors = [(each.name, of) for each in detail.inputs for of in each.connectors]
    fetched = all(of.state == ConnectorState.DONE for _, of in connectors)
    return answers.FelderaStats(
        global_metrics=answers.GlobalMetrics(
            state=STATUS[detail.phase],
            incarnation_uuid=progress.uid,
            start_time=progress.created_at // 1_000,
            pipeline_complete=progress.complete and fetched,
            total_input_records=written,
            buffered_input_records=written - arrived,
            total_processed_records=arrived,
            total_completed_records=arrived,
        ),
        inputs=[
            *(
                answers.Endpoint(
                    endpoint_name=each.name,
                    config=answers.EndpointConfig(stream=each.name),
                    metrics=answers.EndpointMetrics(
                        total_records=each.written, buffered_records=each.written - each.arrived
                    ),
                )
                for each in progress.inputs
            ),
            *(connector_stats_of(source, of) for source, of in connectors),
        ],
    )


def find_connector(
    detail: PipelineDetail, table: str, connector: str
) -> tuple[str, ConnectorDetail]:
    """Return the connector with the name of its input. Raises Refusal if there is no such one."""
    names = [each.name for each in detail.inputs]
    name = name_meant(table, names)
    source = next((each for each in detail.inputs if each.name == name), None)
    if source is None:
        hint = hint_of_names(table, names, "known inputs")
        message = f"pipeline {detail.name} has no input {table!r:.80}"
        raise Refusal(Slug.INPUT_NOT_FOUND, message, hint=hint, known=names)
    known = [each.name for each in source.connectors]
    found = next((each for each in source.connectors if each.name == connector), None)
    if found is None:
        raise no_connector(connector, detail.name, source.name, known)
    return source.name, found


def connector_stats_of(source: str, detail: ConnectorDetail) -> answers.Endpoint:
    return answers.Endpoint(
        endpoint_name=f"{source}.{detail.name}",
        config=answers.EndpointConfig(stream=source),
        metrics=answers.EndpointMetrics(
            total_records=detail.records,
            total_bytes=detail.bytes,
            num_transport_errors=int(detail.error is not None),
            num_parse_errors=detail.dead,
            end_of_input=detail.state == ConnectorState.DONE,
        ),
        paused=detail.state == ConnectorState.WAITING,
    )


def completion_of(outcome: Outcome) -> answers.FelderaCompletion:
    """Return the status of a token that is complete or in progress. Raises Refusal for other
    outcomes: Feldera's words have only these two."""
    match outcome.outcome:
        case OutcomeKind.COMPLETE | OutcomeKind.IN_PROGRESS:
            complete = outcome.outcome is OutcomeKind.COMPLETE
            steps = [stage.batch for stage in outcome.stages if stage.batch is not None]
            return answers.FelderaCompletion(
                status="complete" if complete else "inprogress",
                step=max(steps, default=0 if complete else None),
            )
        case OutcomeKind.DEAD_LETTERED:
            detail = f"{outcome.dead_count} records of the token are dead letters"
            raise Refusal(Slug.RECORDS_DEAD_LETTERED, detail, **_members(outcome))
        case OutcomeKind.LOST:
            detail = "records of the token are lost: they will never arrive"
            raise Refusal(Slug.RECORDS_LOST, detail, **_members(outcome))
        case _:
            detail = f"nobody can judge the token now: {outcome.reason}"
            raise Refusal(Slug.OUTCOME_UNKNOWN, detail, reason=outcome.reason)


def _members(outcome: Outcome) -> dict[str, Any]:
    members: dict[str, Any] = OUTCOME.dump_python(outcome, mode="json", include={"dead", "lost"})
    return members
