"""Accepts what people want of pipelines, and sends it to the stage runner as a command.

Promise: a command that was answered with an id is in Kafka and will be answered once. Ingress
changes no pipeline itself, and reports no more than the reply does. A validation waits for no
pipeline. Its command goes to the runner of the pipeline that it would change, under a key of its
own if there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from waybill_ingress.app.connector_ports import Fetcher
from waybill_ingress.app.ports import Log, SealingClock
from waybill_ingress.app.records import one
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.dead_topics import dead_topic_problems
from waybill_ingress.core.shared_targets import Places, SharedTargets, find_shared
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import encode
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import (
    Command,
    PipelineRecord,
    Reply,
    command_key,
)
from waybill_shared.contract.manifest.maintenance import refuse_no_tasks
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import parse_manifest, place
from waybill_shared.contract.operations import (
    COMPARED_WITH,
    DRY_RUN,
    LINES,
    SINK,
    WITHOUT_PLACES,
    OperationId,
    with_notes,
)
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action

Beginning = Literal["earliest", "latest"]


def reason_of(reply: Reply) -> Slug:
    """Return why a command failed. A runner of a later version may send reasons unknown here."""
    return next((slug for slug in Slug if slug == reply.problem), Slug.INTERNAL)


class Commands:
    def __init__(
        self,
        registry: Registry,
        log: Log,
        mint: SealingClock,
        prefix: str,
        *,
        fetcher: Fetcher,
        places: Callable[[], Places],
    ) -> None:
        """Keep the ports. `places` reads the file of connections."""
        self._registry = registry
        self._log = log
        self._mint = mint
        self._prefix = prefix
        self._fetcher = fetcher
        self._places = places

    async def apply(
        self,
        caller: Caller,
        name: str,
        manifest: str,
        request_id: str,
        log: Log | None = None,
        *,
        allow_shared: bool = False,
    ) -> OperationId:
        """Send a manifest to its runner. Raises UserError if it conflicts with what exists.

        `log`, here and below: another log to write to. `allow_shared`: permit targets that other
        pipelines write.
        """
        declared = parse_manifest(manifest, reserved=self._prefix)
        if declared.name != name:
            message = f"the manifest is called {declared.name!r}, the address says {name!r}"
            hint = f"PUT it to /v1/pipelines/{declared.name}, or change its name"
            raise UserError([Problem(message=message, path="name", hint=hint)])
        notes = await self._compare(caller.tenant, declared, manifest, allow_shared=allow_shared)
        operation = await self._send(
            caller, Action.APPLY, name, request_id, log, manifest=manifest, options=notes
        )
        self._registry.note_applied(caller.tenant, operation)
        return operation

    async def act(
        self, caller: Caller, name: str, action: Action, request_id: str, log: Log | None = None
    ) -> OperationId:
        """Start, stop or delete a pipeline that exists."""
        await self._registry.pipeline(caller.tenant, name)
        return await self._send(caller, action, name, request_id, log)

    async def restart(
        self,
        caller: Caller,
        name: str,
        start_from: Beginning | None,
        request_id: str,
        log: Log | None = None,
    ) -> OperationId:
        """Restart a pipeline. `start_from`: where to start in topics that were created again."""
        await self._registry.pipeline(caller.tenant, name)
        options = {} if start_from is None else {"from": str(start_from)}
        return await self._send(caller, Action.RESTART, name, request_id, log, options=options)

    async def validate(
        self,
        caller: Caller,
        manifest: str,
        request_id: str,
        *,
        without_places: bool = False,
        allow_shared: bool = False,
    ) -> OperationId:
        """Request a check of a manifest, as `apply` would with that `allow_shared`.

        `without_places`: the sender does not know lines and columns of this text.
        """
        declared = parse_manifest(manifest, reserved=self._prefix)
        name = declared.name
        try:
            options = await self._compare(
                caller.tenant, declared, manifest, allow_shared=allow_shared
            )
        except UserError as error:
            raise UserError(error.problems) from error  # the answer of a check is what it found
        operation = OperationId(action=Action.VALIDATE, pipeline=name, nonce=self._mint.nonce())
        options |= {WITHOUT_PLACES: "true"} if without_places else {}
        known = await self._registry.known(caller.tenant, name)
        if known is not None:
            options[COMPARED_WITH] = known.pipeline_uid
        await self._write(self._aside(caller, operation, options, request_id, manifest))
        return operation

    async def maintain(
        self,
        caller: Caller,
        name: str,
        sink: str,
        request_id: str,
        log: Log | None = None,
        *,
        dry_run: bool = False,
    ) -> OperationId:
        """Request maintenance of a sink's table. No other command waits for it."""
        known = await self._registry.pipeline(caller.tenant, name)
        refuse_no_tasks(parse_manifest(known.manifest), sink)
        operation = OperationId(action=Action.MAINTAIN, pipeline=name, nonce=self._mint.nonce())
        options = {COMPARED_WITH: known.pipeline_uid, SINK: sink, DRY_RUN: str(dry_run).lower()}
        await self._write(self._aside(caller, operation, options, request_id), log)
        return operation

    async def logs(self, caller: Caller, name: str, lines: int, request_id: str) -> OperationId:
        """Ask for the newest lines of the log. No other command waits for it."""
        known = await self._registry.pipeline(caller.tenant, name)
        operation = OperationId(action=Action.LOGS, pipeline=name, nonce=self._mint.nonce())
        options = {COMPARED_WITH: known.pipeline_uid, LINES: str(lines)}
        await self._write(self._aside(caller, operation, options, request_id))
        return operation

    def _aside(
        self,
        caller: Caller,
        operation: OperationId,
        options: dict[str, str],
        request_id: str,
        manifest: str | None = None,
    ) -> Command:
        """Make a command that no other one waits for, because its uid is that of no pipeline."""
        return Command(
            tenant=caller.tenant,
            pipeline_uid=operation.nonce,
            id=str(operation),
            pipeline=operation.pipeline,
            life=0,
            action=operation.action,
            manifest=manifest,
            actor=caller.actor,
            request_id=request_id,
            at=self._mint.now_ms(),
            options=options,
        )

    async def _compare(
        self, tenant: str, manifest: Manifest, text: str, *, allow_shared: bool
    ) -> dict[str, str]:
        """Refuse a well-formed manifest that conflicts with what exists. Return options with
        warnings about the rest.
        """
        lives = await self._registry.lives(tenant, manifest.name)
        known = await self._registry.known(tenant, manifest.name)
        others = [
            record
            for record in lives
            if record.tenant == tenant
            and record.name != manifest.name
            and record.desired != "deleted"
        ]
        crossing = dead_topic_problems(manifest, known, others)
        problems = [*crossing, *self._connector_problems(manifest)]
        shared = self._shared_targets(tenant, manifest, text, known, lives)
        undeclared = () if allow_shared else shared.undeclared
        if every := [*problems, *shared.refused, *undeclared]:
            slug = Slug.KEYS_DIFFER if shared.refused else Slug.TARGET_SHARED
            raise UserError(place(every, text), Slug.INVALID if problems else slug)
        return with_notes([*shared.permitted, *shared.notes])

    def _shared_targets(
        self,
        tenant: str,
        manifest: Manifest,
        text: str,
        known: PipelineRecord | None,
        lives: list[PipelineRecord],
    ) -> SharedTargets:
        """Find targets that other pipelines write. An unchanged manifest is not compared."""
        if known is not None and known.manifest == text:
            return SharedTargets()
        return find_shared(manifest, known, lives, tenant=tenant, places=self._places())

    def _connector_problems(self, manifest: Manifest) -> Iterator[Problem]:
        for i, source in enumerate(manifest.inputs):
            for c, connector in enumerate(source.connectors):
                if fault := self._fetcher.fault(connector):
                    yield replace(fault, path=f"inputs.{i}.connectors.{c}.{fault.path}")

    async def _send(
        self,
        caller: Caller,
        action: Action,
        name: str,
        request_id: str,
        log: Log | None,
        *,
        manifest: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> OperationId:
        operation = OperationId(action=action, pipeline=name, nonce=self._mint.nonce())
        life = await self._registry.life_for(caller.tenant, name)
        command = Command(
            tenant=caller.tenant,
            pipeline_uid=life.uid,
            id=str(operation),
            pipeline=name,
            life=life.number,
            action=action,
            manifest=manifest,
            actor=caller.actor,
            request_id=request_id,
            at=self._mint.now_ms(),
            options=dict(options or {}),
        )
        await self._write(command, log)
        return operation

    async def _write(self, command: Command, log: Log | None = None) -> None:
        record = one(encode(command), command_key(command))
        appended = await (log or self._log).append(f"{self._prefix}.commands", record)
        if not appended.delivered:
            (missing,) = (*appended.failed, *appended.refused)
            said = f"{command.action} of {command.pipeline} was not taken: {missing.reason}"
            raise Retryable(said)
