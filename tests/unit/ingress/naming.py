"""Ingress, and the runners that carry out what it sends about names: one command begins a life."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from builders import applied
from unit.ingress.fakes import MANIFEST, FakeFetcher, FakeKafka, FakeMint, pipeline, source
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.renames import Renames
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Apply, Rename, Validate
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord, Reply
from waybill_shared.contract.former_names import names_after, names_of
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.topic_views.pipelines import PipelineDirectory

UIDS = {"orders": "uid-1", "audit": "uid-2", "shop": "uid-3"}


class Nonces(FakeMint):
    """Another one each time."""

    def nonce(self) -> str:
        self.now += 1
        return f"{self.now:032x}"


def record(name: str, *was: str, desired: str = "running") -> PipelineRecord:
    first = was[0] if was else name
    made = replace(pipeline(source(), name=name), pipeline_uid=UIDS[first], was=was)
    return replace(made, manifest=applied(manifest_of(name)), desired=desired)  # type: ignore[arg-type]


def manifest_of(name: str, was: str | None = None) -> str:
    line = f"name: {name}\n" if was is None else f"name: {name}\nwas: {was}\n"
    return MANIFEST.replace("name: orders\n", line, 1).replace("orders.", f"{was or name}.")


def reservation(
    name: str, uid: str, reserved_for: str, life: int = 0, reserved_in: int = 2
) -> PipelineRecord:
    made = replace(record("orders"), name=name, pipeline_uid=uid, life=life, stages=())
    return replace(made, desired="deleted", reserved_for=reserved_for, reserved_in=reserved_in)


@dataclass
class Names:
    """The records of `waybill.pipelines`, and what ingress has read of them."""

    records: dict[str, PipelineRecord] = field(default_factory=dict)
    silent: bool = False
    """True if no runner answers in time."""
    wrong: tuple[Problem, ...] = ()
    """What a check of a manifest finds."""
    check_fails: Slug | None = None

    def __post_init__(self) -> None:
        self.kafka, self.directory, self.mint = FakeKafka(), PipelineDirectory(), Nonces()
        self.registry = Registry(self.directory, self, self.kafka, self.mint)
        self.commands = Commands(
            self.registry, self.kafka, self.mint, "waybill", fetcher=FakeFetcher(), places=dict
        )
        self.renames = Renames(self.registry, self.commands, self)
        self._handled: dict[str, Reply] = {}

    @staticmethod
    def of(*records: PipelineRecord) -> "Names":
        """With the lives by which they have got their names."""
        found = {each.pipeline_uid: each for each in records}
        for each in records:
            for name in (*each.was[1:], *((each.name,) if each.was else ())):
                if name not in each.was[:1]:
                    reserved = reservation(name, f"{name} 0", each.pipeline_uid)
                    found[reserved.pipeline_uid] = reserved
        return Names(found)

    def has_caught_up(self) -> bool:
        return True

    async def catch_up(self) -> bool:
        for each in self.records.values():
            self.directory.accept(each)
        return True

    async def within(self, caller: Caller, operation: OperationId, wait_s: float) -> Reply | None:
        self.carry_out()
        return None if self.silent else self._handled.get(str(operation))

    @property
    def sent(self) -> Sequence[Command]:
        return [decode(Command, each.value) for each in self.kafka.written]

    def carry_out(self) -> None:
        """Carry out all that was sent, each once, as the runners of its keys do."""
        for command in self.sent:
            if command.id not in self._handled:
                self._handled[command.id] = self._handle(command)

    def _handle(self, command: Command) -> Reply:
        before, body = self.records.get(command.pipeline_uid), command.body
        refused, result = None, None
        match body:
            case Validate():
                refused = self.check_fails
                result = json.dumps({"errors": [asdict(each) for each in self.wrong]})
            case Rename(name=name, reserved_for=str() as reserved_for, reserved_in=reserved_in):
                assert reserved_in is not None
                uid, life = command.pipeline_uid, command.life
                wanted = reservation(name, uid, reserved_for, life, reserved_in)
                if self.records.setdefault(uid, wanted) != wanted:
                    refused = Slug.NAME_IN_USE
            case Rename(name=name):
                refused = self._call(command, name)
            case Apply() if before is not None and before.reserved_for:
                refused = Slug.NAME_IN_USE
            case Apply(manifest=manifest):
                refused = self._call(command, manifest.model.name)
            case _:
                raise AssertionError(body)
        problem = Problem(message="it is another one's", hint="choose another name")
        return Reply(
            tenant=command.tenant,
            pipeline_uid=command.pipeline_uid,
            id=command.id,
            pipeline=command.pipeline,
            action=command.action,
            actor=command.actor,
            state=OperationState.DONE if refused is None else OperationState.FAILED,
            generation=None,
            errors=() if refused is None else (problem,),
            warnings=(),
            at=0,
            problem=refused,
            result=result,
        )

    def _call(self, command: Command, name: str) -> Slug | None:
        """Call a pipeline so, or make it; return why not."""
        uid, body = command.pipeline_uid, command.body
        assert isinstance(body, Apply | Rename)
        new = replace(record("orders"), pipeline_uid=uid, name=name, life=command.life)
        before = self.records.get(uid, new)
        if name not in names_of(before) and body.reserved_in != before.generation:
            return Slug.SUPERSEDED
        after = replace(before, name=name, was=names_after(before, name))
        self.records[uid] = replace(after, generation=before.generation + 1)
        return None

    def rename(self, name: str, to: str) -> OperationId:
        asyncio.run(self.renames.reserve(ANYONE, name, to, "r"))
        return asyncio.run(self.commands.rename(ANYONE, name, to, "r"))

    def apply(self, name: str, was: str | None = None) -> OperationId:
        text = manifest_of(name, was)
        self.look_before(name, was)
        return asyncio.run(self.commands.apply(ANYONE, name, text, "r"))

    def look_before(self, name: str, was: str | None = None, *, text: str = "") -> None:
        text = text or manifest_of(name, was)
        asyncio.run(self.renames.reserve_for_apply(ANYONE, name, text, "r", allow_shared=False))

    def living(self) -> list[str]:
        """The names of pipelines that exist: no two may have one."""
        names = [each.name for each in self.records.values() if each.desired != "deleted"]
        assert len(set(names)) == len(names)
        return sorted(names)
