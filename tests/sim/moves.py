"""Everyone's ordinary turns: what happens when nothing goes wrong, in any order."""

from collections.abc import Callable

from sim.log import Place, Row
from sim.shapes import name_of, topic_of_input
from sim.world import World
from waybill_shared.contract.vectors import TopicPartition

ASKED_AT_ONCE = 3
WAITED_FOR = 5
"""The newest tokens are those that somebody waits for."""
TURNS = (1, 3, 10, 100)
Move = Callable[[World], None]


def turn_runner(world: World) -> None:
    world.some_hosts().run_runner()


def beat(world: World) -> None:
    for hosts in world.partitions:
        hosts.run_runner()
        hosts.run_tracker(lambda tracker: tracker.confirm())


def turn_driver(world: World) -> None:
    alive = world.alive()
    if alive:
        driver = world.some(alive)
        for _ in range(world.dice.randint(1, 3)):
            driver.turn()


def repeat_commits(world: World) -> None:
    for driver in world.alive():
        driver.repeat()


def deliver(world: World) -> None:
    """A commit that was on its way arrives, behind younger ones."""
    if world.delayed:
        world.append(world.delayed.pop(world.pick(len(world.delayed))))


def turn_tracker(world: World) -> None:
    count, hosts = world.dice.randint(1, 6), world.some_hosts()
    hosts.run_tracker(lambda tracker: tracker.feed(count))
    hosts.run_tracker(lambda tracker: tracker.flush())


def save(world: World) -> None:
    world.some_hosts().run_tracker(lambda tracker: tracker.checkpoint())


def time_passes(world: World) -> None:
    world.clock.now += world.dice.choice((10, 200, 1_000, 4_000))


def minutes_pass(world: World) -> None:
    world.clock.now += world.dice.choice((20_000, 60_000, 200_000))


def write(world: World) -> None:
    pipeline, source = _input(world)
    world.tell(lambda: world.ingress.write(pipeline, name_of(source), world.dice.randint(1, 3)))


def ask_all(world: World) -> None:
    pipeline, source = _input(world)
    topic = world.cluster.topics.get(topic_of_input(source))
    if topic is None:
        return
    ends: dict[TopicPartition, int] = {
        (topic.topic_id, number): partition.end()
        for number, partition in enumerate(topic.partitions)
    }
    world.tell(lambda: world.ingress.ask_all(pipeline, name_of(source)), ends)


def produce(world: World) -> None:
    """A client with a producer of its own, that asks by its delivery reports."""
    pipeline, source = _input(world)
    topic = world.cluster.topics.get(topic_of_input(source))
    if topic is None:
        return
    places = []
    for _ in range(world.dice.randint(1, 2)):
        number = world.pick(len(topic.partitions))
        offset = topic.partitions[number].append(Row(world.number()))
        places.append(Place(topic.topic_id, number, offset))
    world.tell(lambda: world.ingress.ask_for(pipeline, name_of(source), topic.name, places))


def ask_late(world: World) -> None:
    """A client asks for a record that it, or somebody else, produced a while ago."""
    pipeline, source = _input(world)
    topic = world.cluster.topics.get(topic_of_input(source))
    places = [place for place, _ in topic.rows()] if topic is not None else []
    if topic is not None and places:
        place = world.some(places)
        world.tell(lambda: world.ingress.ask_for(pipeline, name_of(source), topic.name, [place]))


def ask(world: World) -> None:
    for _ in range(min(len(world.issued), ASKED_AT_ONCE)):
        world.ask(world.some(world.issued))


def forge(world: World) -> None:
    if world.issued:
        world.forge(world.some(world.issued))


def wait(world: World) -> None:
    if world.issued:
        world.waiters.wait(world.some(world.issued[-WAITED_FOR:]))


def leave(world: World) -> None:
    world.waiters.leave()


def turn_status(world: World) -> None:
    world.waiters.turn(world.dice.choice(TURNS))


def follow(world: World) -> None:
    ingress_follows(world)
    status_follows(world)


def ingress_follows(world: World) -> None:
    world.ingress.directory.follow()


def status_follows(world: World) -> None:
    world.status.directory.follow()
    world.waiters.hear()


ORDINARY: tuple[tuple[int, Move], ...] = (
    (32, turn_driver),
    (12, turn_runner),
    (2, beat),
    (3, repeat_commits),
    (4, deliver),
    (16, turn_tracker),
    (2, save),
    (6, time_passes),
    (7, write),
    (2, ask_all),
    (3, produce),
    (2, ask_late),
    (14, ask),
    (1, forge),
    (7, wait),
    (1, leave),
    (8, turn_status),
    (4, ingress_follows),
    (4, status_follows),
)


def _input(world: World) -> tuple[str, str]:
    """The name of a pipeline, and one of its inputs."""
    pipeline = world.some(world.pipelines)
    return pipeline.called, world.some(pipeline.shape.inputs)
