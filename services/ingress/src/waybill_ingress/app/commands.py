"""Accepts what people want of pipelines, and sends it to the stage runner as a command.

Promise: a command that was answered with an id is in Kafka and will be answered once. Ingress
changes no pipeline itself, and reports no more than the reply does. A validation waits for no
pipeline. Its command goes to the runner of the pipeline that it would change, under a key of its
own if there is none.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from waybill_ingress.app.connector_ports import Fetcher
from waybill_ingress.app.ports import Log, SealingClock
from waybill_ingress.app.records import one
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.dead_topics import dead_topic_problems
from waybill_ingress.core.renames import find_changed, must_reserve, reserved_in
from waybill_ingress.core.shared_targets import Places, SharedTargets, find_shared
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import encode
from waybill_shared.contract.commands import (
    Apply,
    ChangeBody,
    Logs,
    Maintain,
    PlainChange,
    QuestionBody,
    Rename,
    Validate,
)
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import Command, PipelineRecord, Reply, command_key
from waybill_shared.contract.former_names import find_meant
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.maintenance import refuse_no_tasks
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.topology import sinks_in


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
        applied, known = await self.look_at(caller, name, manifest, allow_shared=allow_shared)
        if known is not None and known.name != name:
            await self._require_holder(known, name)
        life = None if known is None else Life(uid=known.pipeline_uid, number=known.life)
        body = Apply(manifest=applied, reserved_in=reserved_in(known, name))
        operation = await self.send(caller, body, name, request_id, log, life=life)
        self._registry.note_applied(caller.tenant, operation)
        return operation

    async def look_at(
        self, caller: Caller, name: str, manifest: str, *, allow_shared: bool
    ) -> tuple[AppliedManifest, PipelineRecord | None]:
        """Return the manifest of `apply` and the pipeline that it changes. Raises as `apply`."""
        applied = read_manifest(manifest, reserved=self._prefix)
        called = applied.model.name
        if called != name:
            message = f"the manifest is called {called!r}, the address says {name!r}"
            hint = f"PUT it to /v1/pipelines/{called}, or change its name"
            raise UserError([Problem(message=message, path="name", hint=hint)])
        known = await self._find_changed(caller.tenant, applied)
        return await self._compare(caller.tenant, applied, known, allow_shared=allow_shared), known

    async def act(
        self,
        caller: Caller,
        name: str,
        body: PlainChange,
        request_id: str,
        log: Log | None = None,
    ) -> OperationId:
        """Change a pipeline that exists, without a new manifest."""
        await self._registry.pipeline(caller.tenant, name)
        return await self.send(caller, body, name, request_id, log)

    async def rename(
        self, caller: Caller, name: str, to: str, request_id: str, log: Log | None = None
    ) -> OperationId:
        """Call a pipeline otherwise. That name was reserved for it, or it has the name already."""
        record = await self._registry.find_named(caller.tenant, name, to)
        await self._require_holder(record, to)
        life = Life(uid=record.pipeline_uid, number=record.life)
        body = Rename(name=to, reserved_in=reserved_in(record, to))
        operation = await self.send(caller, body, to, request_id, log, life=life)
        self._registry.note_applied(caller.tenant, operation)
        return operation

    def now_ms(self) -> int:
        """Return the time from which a time ago is counted."""
        return self._mint.now_ms()

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
        applied = read_manifest(manifest, reserved=self._prefix)
        if without_places:
            applied = applied.without_places()
        try:
            known = await self._find_changed(caller.tenant, applied)
            applied = await self._compare(caller.tenant, applied, known, allow_shared=allow_shared)
        except UserError as error:
            raise UserError(error.problems) from error  # the answer of a check is what it found
        return await self.check(caller, applied, known, request_id)

    async def check(
        self,
        caller: Caller,
        applied: AppliedManifest,
        known: PipelineRecord | None,
        request_id: str,
    ) -> OperationId:
        """Request a check by a runner of what `look_at` has returned."""
        body = Validate(manifest=applied, about=None if known is None else known.pipeline_uid)
        return await self._ask(caller, body, applied.model.name, request_id)

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
        meant = find_meant(sink, sinks_in(known.stages))
        sink = sink if meant is None else meant.name
        refuse_no_tasks(known.manifest.model, sink)
        body = Maintain(about=known.pipeline_uid, sink=sink, dry_run=dry_run)
        return await self._ask(caller, body, name, request_id, log)

    async def logs(self, caller: Caller, name: str, lines: int, request_id: str) -> OperationId:
        """Ask for the newest lines of the log. No other command waits for it."""
        known = await self._registry.pipeline(caller.tenant, name)
        body = Logs(about=known.pipeline_uid, lines=lines)
        return await self._ask(caller, body, name, request_id)

    async def _ask(
        self,
        caller: Caller,
        body: QuestionBody,
        name: str,
        request_id: str,
        log: Log | None = None,
    ) -> OperationId:
        """Send a question. No command waits for it, because its uid is that of no pipeline."""
        operation = self._operation(body, name)
        aside = Life(uid=operation.nonce, number=0)
        await self._write(self._command(caller, operation, body, request_id, aside), log)
        return operation

    async def _find_changed(self, tenant: str, applied: AppliedManifest) -> PipelineRecord | None:
        """Return the pipeline that the manifest changes; None if it makes a new one."""
        name, was = applied.model.name, applied.model.was
        holder = await self._registry.holder(tenant, name)
        before = None if was is None else await self._registry.holder(tenant, was)
        try:
            return find_changed(name, was, holder, before)
        except UserError as error:
            raise UserError(applied.place(error.problems), Slug.INVALID) from error

    async def _require_holder(self, record: PipelineRecord, name: str) -> None:
        """Raise Retryable if the name is not reserved for the pipeline: two might be called so."""
        if must_reserve(record, name, await self._registry.holder(record.tenant, name)):
            raise Retryable(f"the name {name} was not reserved for {record.name}; try again")

    async def _compare(
        self,
        tenant: str,
        applied: AppliedManifest,
        known: PipelineRecord | None,
        *,
        allow_shared: bool,
    ) -> AppliedManifest:
        """Refuse a well-formed manifest that conflicts with what exists. Return it with warnings
        about the rest. `known`: the pipeline that it changes.
        """
        manifest = applied.model
        lives = await self._registry.lives(tenant, manifest.name)
        own = None if known is None else known.pipeline_uid
        others = [
            record
            for record in lives
            if record.tenant == tenant
            and record.pipeline_uid != own
            and record.desired != "deleted"
        ]
        crossing = dead_topic_problems(manifest, known, others)
        problems = [*crossing, *self._connector_problems(manifest)]
        shared = self._shared_targets(tenant, applied, known, lives)
        undeclared = () if allow_shared else shared.undeclared
        if every := [*problems, *shared.refused, *undeclared]:
            slug = Slug.KEYS_DIFFER if shared.refused else Slug.TARGET_SHARED
            raise UserError(applied.place(every), Slug.INVALID if problems else slug)
        return applied.with_warnings([*shared.permitted, *shared.notes])

    def _shared_targets(
        self,
        tenant: str,
        applied: AppliedManifest,
        known: PipelineRecord | None,
        lives: list[PipelineRecord],
    ) -> SharedTargets:
        """Find targets that other pipelines write. An unchanged manifest is not compared."""
        if known is not None and known.manifest.native == applied.native:
            return SharedTargets()
        return find_shared(applied.model, known, lives, tenant=tenant, places=self._places())

    def _connector_problems(self, manifest: Manifest) -> Iterator[Problem]:
        for i, source in enumerate(manifest.inputs):
            for c, connector in enumerate(source.connectors):
                if fault := self._fetcher.fault(connector):
                    yield replace(fault, path=f"inputs.{i}.connectors.{c}.{fault.path}")

    async def send(
        self,
        caller: Caller,
        body: ChangeBody,
        name: str,
        request_id: str,
        log: Log | None = None,
        *,
        life: Life | None = None,
    ) -> OperationId:
        """Send a change. `life` is the one that it is for, if that is not the one of the name."""
        operation = self._operation(body, name)
        life = life or await self._registry.life_for(caller.tenant, name)
        await self._write(self._command(caller, operation, body, request_id, life), log)
        return operation

    def _operation(self, body: ChangeBody | QuestionBody, name: str) -> OperationId:
        return OperationId(action=body.action, pipeline=name, nonce=self._mint.nonce())

    def _command(
        self,
        caller: Caller,
        operation: OperationId,
        body: ChangeBody | QuestionBody,
        request_id: str,
        life: Life,
    ) -> Command:
        return Command(
            tenant=caller.tenant,
            pipeline_uid=life.uid,
            id=str(operation),
            pipeline=operation.pipeline,
            life=life.number,
            actor=caller.actor,
            request_id=request_id,
            at=self._mint.now_ms(),
            body=body,
        )

    async def _write(self, command: Command, log: Log | None = None) -> None:
        record = one(encode(command), command_key(command))
        appended = await (log or self._log).append(f"{self._prefix}.commands", record)
        if not appended.delivered:
            (missing,) = (*appended.failed, *appended.refused)
            said = f"{command.action} of {command.pipeline} was not accepted: {missing.reason}"
            raise Retryable(said)
