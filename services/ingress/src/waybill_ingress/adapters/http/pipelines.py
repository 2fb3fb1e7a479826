"""Routes of ingress about pipelines: HTTP in, a command, and its answer if that comes in time."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from waybill_ingress.adapters.http.examples import members_of
from waybill_ingress.adapters.http.formats_page import MANIFESTS
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.manifest_models import PutDeadLetterRequest, RescaleRequest
from waybill_ingress.adapters.http.offsets import Confirmed, begin_of
from waybill_ingress.adapters.http.operations import (
    OF_COMMANDS,
    OF_WRITES,
    RESPONSES,
    WAIT_S,
    Carrier,
    Wait,
)
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.ports import Answers
from waybill_ingress.app.renames import Renames
from waybill_shared.contract.beginnings import FORMS, Begin
from waybill_shared.contract.commands import (
    OTHER_NAMES,
    RESTART_MODES,
    STOP_MODES,
    Delete,
    Pause,
    PlainChange,
    PutDeadLetter,
    Rescale,
    Restart,
    RestartFrom,
    Resume,
    Start,
    Stop,
    StopMode,
)
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_shared.http.app import caller, read_body
from waybill_shared.http.bodies import body_of
from waybill_shared.http.openapi import OF_BODIES, body_as, refusals
from waybill_shared.http.request_ids import request_id

OF_TARGETS: Final = (Slug.TARGET_SHARED, Slug.KEYS_DIFFER)
OF_NAMES: Final = (Slug.RENAMED, Slug.NAME_IN_USE)
APPLY_REFUSALS: Final = refusals(
    *OF_BODIES, *OF_COMMANDS, *OF_TARGETS, *OF_NAMES, members=members_of(Action.APPLY)
)
ACT_REFUSALS: Final = refusals(
    Slug.PIPELINE_NOT_FOUND, *OF_COMMANDS, members=members_of(Action.APPLY)
)
BODY_REFUSALS: Final = refusals(
    Slug.PIPELINE_NOT_FOUND, *OF_BODIES, *OF_COMMANDS, members=members_of(Action.APPLY)
)
RESCALE_BYTES_MAX: Final = 4_096  # one number
PUT_BYTES_MAX: Final = 8_192  # a reason, and where a record is
OF_ACTS: Final[dict[str, Any]] = {
    "status_code": 202,
    "responses": ACT_REFUSALS,
    "openapi_extra": OF_WRITES,
}
StartFrom = Annotated[
    str | None,
    Query(
        alias="from",
        max_length=10_000,
        description="where stages begin in topics that were deleted and created again: `earliest`"
        f" or `latest`, needed if they read any. Else where they go back or forward to: {FORMS}",
    ),
]
State = Annotated[
    Literal["resume", "fresh"] | None,
    Query(
        description="`resume`: stages continue after what their sinks have committed, as without"
        " it. `fresh`: they begin again where the manifest says, at the offsets that were written"
        " down when each began; as `from` does, it needs `yes`. Not together with `from`",
    ),
]
RewoundStage = Annotated[
    str | None,
    Query(
        alias="stage",
        description="the only stage that begins there; without it all that read inputs of the"
        " pipeline, or the topics that `from` names. For `state=fresh`, too",
    ),
]
StartedStage = Annotated[
    str | None, Query(description="the only stage that starts of those that have failed")
]
STOP_TEXT: Final = "; ".join(
    f"`{mode}`: {row.meaning} (at most {row.limit_ms // 1000} s by default)"
    for mode, row in STOP_MODES.items()
)
StopAs = Annotated[
    Literal["drain", "checkpoint", "force", "graceful", "immediate"],
    Query(
        description=f"{STOP_TEXT}. A stop that takes longer becomes a stronger one. `graceful` is"
        " another name of `drain`, `immediate` of `force`"
    ),
]
RestartAs = Annotated[
    Literal["safe", "force"],
    Query(
        description="`safe`: the running batch ends first; if it fails, the restart goes on all the"
        " same, with a warning. `force`: the driver is killed at once, and the next one repeats"
        " the batch"
    ),
]
AllowShared = Annotated[
    bool,
    Query(
        description="apply it even if another pipeline writes to the topic or table of a sink, and"
        " not both sinks say `shared: true`",
    ),
]


def pipelines_router(
    commands: Commands, renames: Renames, answers: Answers, repeats: IdempotentRoutes
) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}", tags=["pipelines"], responses=RESPONSES)
    carrier = Carrier(answers, repeats)
    _add_apply(router, commands, renames, carrier)
    _add_acts(router, commands, carrier)
    _add_new_runs(router, commands, carrier)
    _add_put(router, commands, carrier)
    return router


def _add_apply(router: APIRouter, commands: Commands, renames: Renames, carrier: Carrier) -> None:
    @router.put(
        "",
        summary="Create or change a pipeline by its manifest",
        status_code=202,
        responses=APPLY_REFUSALS,
        openapi_extra={**OF_WRITES, "requestBody": MANIFESTS},
    )
    async def apply(
        request: Request,
        pipeline: str,
        *,
        allow_shared: AllowShared = False,
        wait: Wait = WAIT_S,
    ) -> Response:
        """Compile the manifest before anything is recorded: a manifest that is refused has changed
        nothing. The name in it must be that of the path. With `was` in it, a pipeline goes on under
        that name.
        """
        raw = await read_body(request, bytes_max=SIZE_BYTES_MAX)
        asked = (caller(request), pipeline, _decode(raw), request_id(request))
        begin = partial(commands.apply, *asked, allow_shared=allow_shared)
        prepare = partial(renames.reserve_for_apply, *asked, allow_shared=allow_shared)
        return await carrier.carry_out(request, begin, wait, raw, prepare=prepare)


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError([Problem(message=f"byte {error.start + 1} is not UTF-8")]) from error


def _add_acts(router: APIRouter, commands: Commands, carrier: Carrier) -> None:
    """Add the commands that have no body."""

    async def carry_out(
        request: Request, pipeline: str, body: PlainChange, wait: float
    ) -> Response:
        begin = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, begin, wait)

    @router.post("/start", summary="Start a stopped pipeline from its checkpoint", **OF_ACTS)
    async def start_pipeline(
        request: Request, pipeline: str, stage: StartedStage = None, wait: Wait = WAIT_S
    ) -> Response:
        """Continue after what its sinks have committed. If single stages of a pipeline that runs
        have failed, these start, each with a fresh budget of dead letters, and the others go on;
        without any, it stays as it is. The operation fails if a stage cannot be started.
        """
        return await carry_out(request, pipeline, Start(stage=stage), wait)

    @router.post("/stop", summary="Stop a pipeline; what it has not processed waits", **OF_ACTS)
    async def stop_pipeline(
        request: Request, pipeline: str, mode: StopAs = "checkpoint", wait: Wait = WAIT_S
    ) -> Response:
        """Stop the pipeline. Its tokens stay in progress until it is started again. A stronger stop
        overtakes one that goes on; a weaker one changes nothing.
        """
        as_named = OTHER_NAMES.get(mode) or StopMode(mode)
        return await carry_out(request, pipeline, Stop(mode=as_named), wait)

    @router.post("/pause", summary="Pause a pipeline; its driver stays", **OF_ACTS)
    async def pause(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Let the running batch end, and begin no other. It stays paused if it is changed, or gets
        another driver. Its tokens stay in progress, `blocked_by: paused`.
        """
        return await carry_out(request, pipeline, Pause(), wait)

    @router.post("/resume", summary="Let a paused pipeline continue", **OF_ACTS)
    async def resume(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Begin batches again. A pipeline that runs stays as it is."""
        return await carry_out(request, pipeline, Resume(), wait)

    @router.delete("", summary="Delete a pipeline; what it has not processed ends lost", **OF_ACTS)
    async def delete_pipeline(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Delete the pipeline. Topics and tables stay as they are. Its name is free again."""
        return await carry_out(request, pipeline, Delete(), wait)


def _add_new_runs(router: APIRouter, commands: Commands, carrier: Carrier) -> None:
    """Add the commands that let a pipeline run in another way than before."""

    @router.post(
        "/restart",
        summary="Run a pipeline with a new driver, also on topics that were created again",
        **OF_ACTS,
    )
    async def restart(  # noqa: PLR0917 - parameters of the query
        request: Request,
        pipeline: str,
        start_from: StartFrom = None,
        mode: RestartAs = "safe",
        state: State = None,
        stage: RewoundStage = None,
        confirmed: Confirmed = False,  # noqa: FBT002 - a parameter of the query
        wait: Wait = WAIT_S,
    ) -> Response:
        """Restart the pipeline. It continues after what its sinks have committed; a paused one
        stays paused. Records that were not read of a deleted topic end lost. With `from` stages
        go back, and rows are written again while tokens keep their outcomes; or they go forward,
        and tokens of what they skip end lost.
        """
        begin = begin_of(start_from)
        _refuse_stage_alone(stage, begin, state)
        body = Restart(
            start_from=_word_of(begin, state),
            at=begin.since(commands.now_ms()),
            offsets=begin.offsets,
            stage=stage,
            confirmed=confirmed,
            mode=RESTART_MODES[mode],
        )
        act = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, act, wait)

    @router.post(
        "/rescale",
        summary="Set how many tasks of a pipeline run at once",
        status_code=202,
        responses=BODY_REFUSALS,
        openapi_extra={**OF_WRITES, **body_as(RescaleRequest)},
    )
    async def rescale(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Let the running batch end, and continue with a driver of that size. A paused pipeline
        stays paused. If the pipeline does not run, the number is for its next start. It counts
        until a manifest changes its `parallelism`.
        """
        raw = await read_body(request, bytes_max=RESCALE_BYTES_MAX)
        body = Rescale(parallelism=body_of(RescaleRequest, raw).parallelism)
        begin = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, begin, wait, raw)


def _word_of(begin: Begin, state: str | None) -> RestartFrom | None:
    """Return the word that says where to begin. Raise UserError if it is said twice."""
    if state is not None and begin != Begin():
        message = f"state={state} says where stages begin, and so does from"
        hint = (
            "from alone says where they begin, state=fresh where the manifest says, and"
            " state=resume, as neither, after what their sinks have"
        )
        raise UserError([Problem(message=message, hint=hint)])
    return "fresh" if state == "fresh" else begin.word


def _refuse_stage_alone(stage: str | None, begin: Begin, state: str | None) -> None:
    """Raise UserError if a stage is named, and nothing says where it begins."""
    if stage is not None and begin == Begin() and state != "fresh":
        message = f"stage={stage} names a stage, and nothing says where it begins"
        hint = "add from or state=fresh; without stage, the whole pipeline is restarted"
        raise UserError([Problem(message=message, hint=hint)])


def _add_put(router: APIRouter, commands: Commands, carrier: Carrier) -> None:
    @router.post(
        "/dead-letters",
        summary="Put a record into its dead-letter topic before any batch reads it",
        status_code=202,
        responses=BODY_REFUSALS,
        openapi_extra={**OF_WRITES, **body_as(PutDeadLetterRequest)},
    )
    async def put_dead_letter(request: Request, pipeline: str, wait: Wait = WAIT_S) -> Response:
        """Restart the pipeline without this record, which ends its driver, or lets its batch hang.
        The driver is killed at once, and the next one writes the letter before its first batch. A
        paused pipeline stays paused, a failed one is started. One that is stopped or finished stays
        so: its next start does it. The operation fails if the record was processed before, is not
        in Kafka any more, or is read by no stage.
        """
        raw = await read_body(request, bytes_max=PUT_BYTES_MAX)
        asked = body_of(PutDeadLetterRequest, raw)
        record = PutDeadLetter(
            topic=asked.topic, partition=asked.partition, offset=asked.offset, reason=asked.reason
        )
        body = Restart(mode=StopMode.FORCE, stage=asked.stage, dead_letter=record)
        begin = partial(commands.act, caller(request), pipeline, body, request_id(request))
        return await carrier.carry_out(request, begin, wait, raw)
