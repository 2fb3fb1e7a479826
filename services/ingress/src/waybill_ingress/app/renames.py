"""Reserves names for pipelines that are to be called otherwise.

Promise: two pipelines never have one name. Before a pipeline is called otherwise, the next life of
that name begins as a name only, under a key of its own: the runner of that key lets one command
begin it, whatever races. Then the change is sent. A name that is reserved, and no
change followed, stays that of the pipeline; the same change again goes on with it.
"""

from typing import Final

from waybill_ingress.app.commands import Commands, reason_of
from waybill_ingress.app.ports import Answers
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.renames import must_reserve
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.commands import Rename
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.words import OperationState
from waybill_shared.process.failpoints import reach

WAIT_S: Final = 10.0  # a name waits for the check of a manifest that may begin with it


class Renames:
    def __init__(self, registry: Registry, commands: Commands, answers: Answers) -> None:
        self._registry = registry
        self._commands = commands
        self._answers = answers

    async def reserve(self, caller: Caller, name: str, to: str, request_id: str) -> None:
        """Reserve the name for the pipeline. Raises Refusal if it is that of another one."""
        record = await self._registry.find_named(caller.tenant, name, to)
        await self._reserve(caller, record, to, request_id)

    async def reserve_for_apply(
        self, caller: Caller, name: str, manifest: str, request_id: str, *, allow_shared: bool
    ) -> None:
        """Reserve the name if the manifest says that a pipeline of another name gets it.

        What can be refused without its runner is refused first. Raises as `apply`.
        """
        if "was" not in manifest:  # to read a manifest takes some time
            return
        _, known = await self._commands.look_at(caller, name, manifest, allow_shared=allow_shared)
        if known is not None:
            await self._reserve(caller, known, name, request_id)

    async def _reserve(
        self, caller: Caller, record: PipelineRecord, name: str, request_id: str
    ) -> None:
        holder = await self._registry.holder(caller.tenant, name)
        if not must_reserve(record, name, holder):
            return
        body = Rename(name=name, reserved_for=record.pipeline_uid)
        life = await self._registry.life_for(caller.tenant, name)
        operation = await self._commands.send(caller, body, name, request_id, life=life)
        reply = await self._answers.within(caller, operation, WAIT_S)
        if reply is None:
            raise Retryable(f"the name {name} is not reserved yet; send it again: it goes on")
        if reply.state is not OperationState.DONE:
            said = "; ".join(error.message for error in reply.errors)
            hints = (error.hint for error in reply.errors if error.hint)
            raise Refusal(reason_of(reply), said, hint=next(hints, ""))
        reach("rename.reserved")
