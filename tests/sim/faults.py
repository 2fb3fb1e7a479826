"""What can go wrong: with processes, Redis, topics, checkpoints."""

from dataclasses import dataclass

from sim import operators
from sim.log import Partition, Row, Topic, Transaction
from sim.moves import Move
from sim.world import World

PARTITIONS_MAX = 4
CUT_OFF_MAX = 2
STOPPED_MAX = 2
STUCK = 0.5
SKEWS_MS = (0, 0, -2_000, 2_000, -20_000, 20_000, -3_600_000)


def kill_driver(world: World) -> None:
    alive = world.alive()
    if alive:
        world.some(alive).kill()


def suspect_driver(world: World) -> None:
    """Only one that is paused can be taken for dead and still come back."""
    for driver in world.alive():
        if driver.busy:
            world.suspect(driver)


def kill_runner(world: World) -> None:
    world.some_hosts().replace_runner()


def cut_runner(world: World) -> None:
    hosts = world.some_hosts()
    if len(hosts.cut_off) < CUT_OFF_MAX:
        hosts.cut_runner()


def return_runners(world: World) -> None:
    world.some_hosts().return_runners()


def run_cut_off(world: World) -> None:
    world.some_hosts().run_cut_off()


def move_runner(world: World) -> None:
    world.some_hosts().move_runner()


def move_tracker(world: World) -> None:
    world.some_hosts().move_tracker()


def stop_tracker(world: World) -> None:
    hosts = world.some_hosts()
    if len(hosts.stopped) < STOPPED_MAX:
        hosts.stop_tracker()


def wake_trackers(world: World) -> None:
    world.some_hosts().wake_trackers()


def publish_badly(world: World) -> None:
    """For a while the brokers acknowledge late."""
    world.rates.stuck = 0.0 if world.rates.stuck else STUCK


def lose_patience(world: World) -> None:
    """Commands are refused that could not be written down for too long."""
    world.patient = False


def kill_tracker(world: World) -> None:
    world.some_hosts().replace_tracker()


def copy_redis(world: World) -> None:
    world.redis.copy()


def flush_redis(world: World) -> None:
    world.say("redis is flushed")
    world.redis.flush()


def restart_redis(world: World) -> None:
    """It comes back empty, from a dump, or as a replica that had not heard everything."""
    world.say("redis restarts")
    copies = [{}, *world.redis.copies]
    world.redis.restart(world.some(copies))


def cut_power(world: World) -> None:
    """All of Waybill goes down at once, and what Redis comes back with is what it had on disk."""
    for hosts in world.partitions:
        hosts.replace_runner()
        hosts.replace_tracker()
    restart_redis(world)


def set_clock(world: World) -> None:
    """Somebody sets a machine's clock; it may go back."""
    world.some(world.clocks.each()).ahead_ms = world.dice.choice(SKEWS_MS)


def redis_away(world: World) -> None:
    world.redis.away = not world.redis.away
    world.redis.cut()


def hush_redis(world: World) -> None:
    """What it publishes is lost for a while, and no connection breaks."""
    world.redis.hushed = not world.redis.hushed


def replace_status(world: World) -> None:
    world.waiters.replace()


def stranger_opens(world: World) -> None:
    """Somebody else's transaction on one of our topics; it hides what comes behind it."""
    topic = _topic(world)
    if topic is None or len(world.storage.strangers) > 1:
        return
    transaction = Transaction()
    for _ in range(world.dice.randint(1, 2)):
        transaction.append(world.some(topic.partitions), Row(world.number()))
    world.storage.strangers.append(transaction)


def stranger_ends(world: World) -> None:
    world.storage.end_strangers()


def add_partition(world: World) -> None:
    topic = _topic(world)
    if topic is not None and len(topic.partitions) < PARTITIONS_MAX:
        world.say(f"{topic.name} gets a partition")
        topic.partitions.append(Partition())


def lose_last_files(world: World) -> None:
    """The last plan and its commit never reached the disk."""
    _damage(world, ("offsets", "commits"))


def lose_commit_log(world: World) -> None:
    _damage(world, ("commits",))


def lose_checkpoint(world: World) -> None:
    for driver in world.alive():
        driver.kill()
    world.say("checkpoints are lost")
    world.files.restore({})


def keep_checkpoint(world: World) -> None:
    world.kept = world.files.copy()


def restore_checkpoint(world: World) -> None:
    for driver in world.alive():
        driver.kill()
    world.say("checkpoints of another moment are restored")
    world.files.restore(world.kept)


def truncate_file(world: World) -> None:
    for driver in world.alive():
        driver.kill()
    names = [path for path in world.files.copy() if not path.endswith("metadata")]
    if names:
        name = world.some(names)
        world.say(f"{name} is cut")
        world.files.cut(name)


def retention_passes(world: World) -> None:
    """The oldest records go, whether or not anybody has read them."""
    topic = _topic(world)
    if topic is not None:
        partition = topic.partitions[world.pick(len(topic.partitions))]
        world.disturbed = True
        partition.start = world.dice.randint(partition.start, partition.stable_end())
        world.say(f"{topic.name} begins at {partition.start} now")


def delete_topic(world: World) -> None:
    topic = _topic(world)
    if topic is not None:
        world.say(f"{topic.name} is deleted")
        world.disturbed = True
        world.deleted[topic.name] = len(topic.partitions)
        world.cluster.delete(topic.name)


def create_topic(world: World) -> None:
    """Under its old name; it may have grown past every old offset before anybody looks."""
    for name in sorted(world.deleted):
        if name not in world.cluster.topics:
            topic = world.cluster.create(name, world.topic_id(), world.deleted[name])
            world.say(f"{name} is created anew")
            for _ in range(world.dice.choice((0, 3, 12))):
                world.some(topic.partitions).append(Row(world.number()))
        del world.deleted[name]


def recreate_topic(world: World) -> None:
    delete_topic(world)
    create_topic(world)


@dataclass(frozen=True, slots=True)
class Family:
    """Faults that come together in a scenario, or not at all in it."""

    name: str
    moves: tuple[tuple[int, Move], ...]


FAMILIES = (
    Family("driver", ((2, kill_driver), (12, suspect_driver))),
    Family("runner", ((1, kill_runner),)),
    Family("tracker", ((3, kill_tracker),)),
    Family("rebalance", ((2, move_runner), (2, move_tracker))),
    Family("stopped", ((2, stop_tracker), (2, wake_trackers))),
    Family("cutoff", ((2, cut_runner), (3, return_runners), (6, run_cut_off))),
    Family("publishes", ((2, publish_badly),)),
    Family("refusals", ((3, publish_badly), (3, lose_patience))),
    Family("redis", ((1, copy_redis), (2, flush_redis), (2, restart_redis), (1, redis_away))),
    Family("status", ((2, replace_status), (3, hush_redis))),
    Family("power", ((1, copy_redis), (2, cut_power))),
    Family("strangers", ((2, stranger_opens), (2, stranger_ends))),
    Family("partitions", ((1, add_partition),)),
    Family(
        "checkpoint",
        (
            (1, lose_last_files),
            (1, lose_commit_log),
            (1, lose_checkpoint),
            (1, keep_checkpoint),
            (1, restore_checkpoint),
            (1, truncate_file),
        ),
    ),
    Family("operator", ((1, operators.stop), (2, operators.start), (1, operators.restart))),
    Family("pauses", ((2, operators.pause), (2, operators.resume), (1, operators.start))),
    Family("clocks", ((3, set_clock),)),
    Family("retention", ((1, retention_passes),)),
    Family("deaths", ((3, operators.change_mood),)),
    Family(
        "topics",
        ((1, recreate_topic), (1, delete_topic), (1, create_topic), (2, operators.restart_from)),
    ),
    Family("lives", ((1, operators.delete), (2, operators.apply))),
    Family(
        "manifest",
        (
            (1, operators.add_stage),
            (1, operators.add_sink),
            (1, operators.remove_stage),
            (1, operators.remove_sink),
        ),
    ),
    Family(
        "returns",
        (
            (1, operators.remove_stage),
            (1, operators.remove_sink),
            (2, operators.return_stage),
            (2, operators.return_sink),
        ),
    ),
    Family(
        "inputs",
        (
            (1, operators.rename_input),
            (1, operators.add_stage),
            (1, operators.remove_input),
            (1, operators.turn_inner),
            (1, operators.turn_root),
        ),
    ),
    Family("renames", operators.RENAMES),
    Family(
        "stops",
        (
            (3, operators.change_mood),
            (3, operators.tighten_budget),
            (2, operators.start_stage),
            (1, operators.start),
            (1, operators.rescale),
            (1, kill_driver),
            (1, kill_runner),
        ),
    ),
    Family("rewinds", ((3, operators.rewind), (1, operators.start), (1, kill_driver))),
)


def _damage(world: World, logs: tuple[str, ...]) -> None:
    for driver in world.alive():
        driver.kill()
    world.say(f"the last of {', '.join(logs)} is lost")
    newest: dict[tuple[str, str], int] = {}
    for path in world.files.copy():
        folder, log, name = path.rsplit("/", 2)
        if log in logs:
            newest[folder, log] = max(newest.get((folder, log), 0), int(name))
    last = {folder: max(n for (f, _), n in newest.items() if f == folder) for folder, _ in newest}
    for (folder, log), number in newest.items():
        if number == last[folder]:
            world.files.remove(f"{folder}/{log}/{number}")


def _topic(world: World) -> Topic | None:
    names = sorted(world.cluster.topics)
    return world.cluster.topics[world.some(names)] if names else None
