"""The pipelines of a world, by name: what their manifests say, and what operators ask for."""

from typing import Protocol

from shared.events import Command, PipelineRecord
from shared.pipelines import Life
from shared.settings import DEFAULT_TENANT
from sim.clients import Ingress
from sim.clocks import TrueClock
from sim.hosts import Hosts
from sim.shapes import Shape, Stage, topic_of_input


class Around(Protocol):
    ingress: Ingress
    records: list[PipelineRecord]

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
        self._world = world
        self._shapes: dict[str, Shape] = {}
        self._asked = ""
        """The id of the newest command."""

    def applied(self) -> Shape:
        """The shape of the newest manifest that was not refused."""
        mine = (r for r in reversed(self._world.records) if r.name == self.name)
        return next((self._shapes[record.manifest] for record in mine), self.shape)

    def newest(self) -> PipelineRecord | None:
        """Of its last life."""
        lives = [record for record in self._world.records if record.name == self.name]
        return max(reversed(lives), key=lambda record: record.life, default=None)

    def change(self, shape: Shape) -> None:
        """Unless a topic would be an input that was one before and meanwhile was none: the product
        forgets then that tokens of the first time had their end."""
        if not self._brings_back(shape):
            self.shape = shape
            self.command("apply")

    def _brings_back(self, shape: Shape) -> bool:
        world = self._world
        shapes = [self._shapes[r.manifest] for r in world.records if r.name == self.name]
        replies = world.hosts_of(self._life.uid).operations.replies
        if replies.get(self._asked, ("",))[0] != "failed":
            shapes.append(self.shape)
        left: set[str] = set()
        before: set[str] = set()
        for each in (*shapes, shape):
            roots = set(map(topic_of_input, each.inputs))
            if roots & left:
                return True
            left |= before - roots
            before = roots
        return False

    @property
    def _life(self) -> Life:
        return self._world.ingress.directory.life_for(DEFAULT_TENANT, self.name)

    def command(self, action: str, **options: str) -> None:
        world, life = self._world, self._life
        number = world.commanded() + 1
        manifest = self.shape.manifest(self.name) if action == "apply" else None
        if manifest is not None:
            self._shapes[manifest] = self.shape
        self._asked = f"c{number}"
        world.say(f"command {action} {self.name} {options or ''}")
        world.hosts_of(life.uid).operations.commands.append(
            Command(
                tenant=DEFAULT_TENANT,
                pipeline_uid=life.uid,
                life=life.number,
                id=self._asked,
                pipeline=self.name,
                action=action,  # type: ignore[arg-type]
                manifest=manifest,
                actor="sim",
                request_id=f"r{number}",
                at=world.clock.now_ms(),
                options=options,
            )
        )
