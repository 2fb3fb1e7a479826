"""The pipelines of a world, by their first names: what their manifests say, and what operators ask
for."""

import json
from dataclasses import replace
from typing import Protocol

from message_builders import make_body
from sim.clients import Ingress
from sim.clocks import TrueClock
from sim.hosts import Hosts
from sim.runs import Runs
from sim.shapes import Shape, Stage
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.commands import Apply, ChangeBody
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.pipelines import Life


class Around(Protocol):
    ingress: Ingress
    records: list[PipelineRecord]
    runs: Runs

    @property
    def clock(self) -> TrueClock: ...

    def commanded(self) -> int: ...

    def hosts_of(self, uid: str) -> Hosts: ...

    def say(self, text: str) -> None: ...


class Pipeline:
    def __init__(self, world: Around, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        """As the newest manifest has it, refused or not."""
        self.removed: list[Stage] = []
        """Stages as they were when they, or one of their sinks, were taken away."""
        self.wanted: list[tuple[str, str, str, int]] = []
        """Names that are being reserved for it: the uid, the name, the command and the generation
        of each.
        """
        self._world = world
        self._shapes: dict[str, Shape] = {}

    @property
    def called(self) -> str:
        """Its present name."""
        record = self.newest()
        return self.name if record is None or record.desired == "deleted" else record.name

    def applied(self) -> Shape:
        """The shape of the newest manifest that was not refused."""
        mine = (r for r in reversed(self._world.records) if self._has(r))
        return next((self._shapes[_nameless(r.manifest.source)] for r in mine), self.shape)

    def earlier(self) -> list[Shape]:
        """The shapes of all manifests that were sent."""
        return list(self._shapes.values())

    def newest(self) -> PipelineRecord | None:
        """Of its last life."""
        lives = [record for record in self._world.records if self._has(record)]
        return max(reversed(lives), key=lambda record: record.life, default=None)

    def change(self, shape: Shape) -> None:
        self.shape = shape
        self.command("apply")

    def _has(self, record: PipelineRecord) -> bool:
        return first_name(record) == self.name and not record.reserved_for

    @property
    def _life(self) -> Life:
        return self._world.ingress.directory.life_for(DEFAULT_TENANT, self.name)

    def command(
        self,
        action: str,
        start_from: str | None = None,
        body: ChangeBody | None = None,
        *,
        life: Life | None = None,
        name: str | None = None,
        was: tuple[str, int] | None = None,
    ) -> str:
        """Send a command. `life` and `name` are those of another name than its present one. `was`
        is for a manifest: the name before, and the generation for which the other one is reserved.
        """
        world, life, name = self._world, life or self._life, name or self.called
        number = world.commanded() + 1
        manifest = self.shape.manifest(name, was and was[0]) if action == "apply" else None
        if manifest is not None:
            self._shapes[_nameless(manifest)] = self.shape
        if action == "start":
            world.runs.asked(life.uid, f"c{number}")
        body = body or make_body(action, manifest=manifest or "", start_from=start_from)
        if isinstance(body, Apply) and was is not None:
            body = replace(body, reserved_in=was[1])
        world.say(f"command {action} {self.name} {start_from or ''}{(was and f' as {name}') or ''}")
        world.hosts_of(life.uid).operations.commands.append(
            Command(
                tenant=DEFAULT_TENANT,
                pipeline_uid=life.uid,
                life=life.number,
                id=f"c{number}",
                pipeline=name,
                actor="sim",
                request_id=f"r{number}",
                at=world.clock.now_ms(),
                body=body,
            )
        )
        return f"c{number}"


def _nameless(manifest: str) -> str:
    tree = json.loads(manifest)
    return json.dumps({key: value for key, value in tree.items() if key not in ("name", "was")})
