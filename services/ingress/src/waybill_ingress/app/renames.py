"""Reserves names for pipelines that are to be called otherwise.

Promise: two pipelines never have one name. Before a pipeline is called otherwise, the next life of
that name begins as a name only, under a key of its own: the runner of that key lets one command
begin it, whatever races. Then the change is sent. A name that is reserved, and no change followed,
is that of the pipeline until its next generation; the same change again goes on with it.

A manifest is checked by a runner before its name is reserved: one that is refused reserves nothing.
"""

import json
from dataclasses import dataclass
from typing import Final

from waybill_ingress.app.commands import Commands, reason_of
from waybill_ingress.app.ports import Answers
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.remembering import remember
from waybill_ingress.core.renames import must_reserve
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.commands import Rename
from waybill_shared.contract.errors import Problem, Refusal, Retryable, UserError
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.renamed import rename_manifest
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.process.failpoints import reach

WAIT_S: Final = 10.0  # a name waits for the check of a manifest that may begin with it
CHECK_AGE_MS_MAX: Final = 60_000  # a runner answers sooner, if it is not overloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """A check of a manifest that was sent and is not answered yet."""

    operation: OperationId
    at: int


class Renames:
    def __init__(self, registry: Registry, commands: Commands, answers: Answers) -> None:
        self._registry = registry
        self._commands = commands
        self._answers = answers
        self._checks: dict[str, _Check] = {}

    async def reserve(self, caller: Caller, name: str, to: str, request_id: str) -> None:
        """Reserve the name for the pipeline. Raises Refusal if it is that of another one, and
        UserError if its manifest is not valid any more.
        """
        record = await self._registry.find_named(caller.tenant, name, to)
        if await self._must_reserve(record, to):
            rename_manifest(record.manifest, to, was=record.name)
            await self._reserve(caller, record, to, request_id)

    async def reserve_for_apply(
        self, caller: Caller, name: str, manifest: str, request_id: str, *, allow_shared: bool
    ) -> None:
        """Reserve the name if the manifest says that a pipeline of another name gets it.

        What can be refused without its runner is refused first. Raises as `apply`.
        """
        if "was" not in manifest:  # to read a manifest takes some time
            return
        applied, known = await self._commands.look_at(
            caller, name, manifest, allow_shared=allow_shared
        )
        if known is None or not await self._must_reserve(known, name):
            return
        await self._require_valid(caller, applied, known, request_id)
        await self._reserve(caller, known, name, request_id)

    async def _must_reserve(self, record: PipelineRecord, name: str) -> bool:
        return must_reserve(record, name, await self._registry.holder(record.tenant, name))

    async def _require_valid(
        self, caller: Caller, applied: AppliedManifest, known: PipelineRecord, request_id: str
    ) -> None:
        """Raise UserError or Refusal if a runner would refuse the manifest. One that is sent again
        waits for the same check, if that goes on.
        """
        key = f"{known.pipeline_uid} {applied.native}"
        check, now = self._checks.get(key), self._commands.now_ms()
        if check is None or now - check.at > CHECK_AGE_MS_MAX:
            operation = await self._commands.check(caller, applied, known, request_id)
            check = _Check(operation=operation, at=now)
            remember(self._checks, key, check)
        reply = await self._answers.within(caller, check.operation, WAIT_S)
        if reply is None:
            raise Retryable(f"the manifest of {applied.model.name} is not checked yet; try again")
        self._checks.pop(key, None)
        _require_done(reply)
        if reply.result is None:
            raise Retryable("what the check has found was not kept; try again")
        if found := json.loads(reply.result)["errors"]:
            raise UserError([Problem(**each) for each in found], Slug.INVALID)

    async def _reserve(
        self, caller: Caller, record: PipelineRecord, name: str, request_id: str
    ) -> None:
        uid, generation = record.pipeline_uid, record.generation
        body = Rename(name=name, reserved_for=uid, reserved_in=generation)
        life = await self._registry.life_for(caller.tenant, name)
        operation = await self._commands.send(caller, body, name, request_id, life=life)
        reply = await self._answers.within(caller, operation, WAIT_S)
        if reply is None:
            raise Retryable(f"the name {name} is not reserved yet; send it again: it goes on")
        _require_done(reply)
        reach("rename.reserved")


def _require_done(reply: Reply) -> None:
    """Raise Refusal if the command has failed."""
    if reply.state is not OperationState.DONE:
        said = "; ".join(error.message for error in reply.errors)
        hints = (error.hint for error in reply.errors if error.hint)
        raise Refusal(reason_of(reply), said, hint=next(hints, ""))
