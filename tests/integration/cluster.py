"""Three brokers, each of them a controller too, that can be paused, killed and cut off.

Between each two of them lies a road for what controllers say to each other; clients, and brokers
that copy records, take none.
"""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata, NewTopic

from integration.lossy import BROKER_HEARTBEAT, ENVELOPE, FETCH, FETCH_SNAPSHOT, VOTE, LossyRoad
from integration.waiting import eventually
from waybill_local import broker, jars
from waybill_local.errors import StackError
from waybill_local.folders import make_private
from waybill_local.java import find_java
from waybill_local.ports import HOST, pick
from waybill_local.processes import Child, ChildSpec, start, stop, wait_ready
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.topics import create_missing

NODES: Final = (1, 2, 3)
CLUSTER_ID: Final = "WaybillThreeBrokers00A"
HEAP: Final = "-Xmx256m"
SESSION_MS: Final = 2_000  # silent for so long, a broker leads no partition any more
METADATA: Final = (FETCH, VOTE, FETCH_SNAPSHOT, BROKER_HEARTBEAT, ENVELOPE)
ANSWER_TIMEOUT_S: Final = 2.0
MOVE_WITHIN_S: Final = 120.0
STARTS: Final = 3
ASKED: Final = 8  # times, until none of the brokers is left out
SETTINGS: Final = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "broker.session.timeout.ms": SESSION_MS,
    "broker.heartbeat.interval.ms": SESSION_MS // 4,
    "controller.socket.timeout.ms": SESSION_MS,  # by default half a minute
}
Roads = Mapping[tuple[int, int], LossyRoad]
"""By who asks and who is asked."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    specs: Mapping[int, ChildSpec]
    folder: Path
    roads: Roads
    running: dict[int, Child] = field(default_factory=dict)

    @property
    def kafka(self) -> str:
        return self.among(*NODES)

    def among(self, *nodes: int) -> str:
        return ",".join(self.specs[node].address for node in nodes)

    def start(self, *nodes: int) -> None:
        logs = make_private(self.folder / "logs")
        started = {node: start(self.specs[node], logs) for node in nodes}
        self.running |= started
        wait_ready(started.values(), interrupted=lambda: False, on_ready=lambda child: None)

    def end(self) -> None:
        living = list(self.running.values())
        self.running.clear()
        stop(living, forced=lambda: True, on_stopped=lambda child, graceful: None)

    def whole(self) -> bool:
        """Whether each broker knows of all, and all partitions are copied to all they should."""
        try:
            return all(_whole(self.seen_by(node)) for node in NODES)
        except KafkaException:
            return False

    def seen_by(self, node: int, topic: str | None = None) -> ClusterMetadata:
        """What that very broker answers; a new client has met no other."""
        asked = make_admin(self.specs[node].address).client
        return asked.list_topics(topic, timeout=ANSWER_TIMEOUT_S)

    def leader(self, topic: str, node: int) -> int:
        """Who leads the first partition, as `node` has it."""
        return int(self.seen_by(node, topic).topics[topic].partitions[0].leader)

    def follower(self) -> int:
        """One that is not the active controller."""
        states = [
            json.loads((self.folder / str(node) / QUORUM_STATE).read_text()) for node in NODES
        ]
        active = max(states, key=lambda state: int(state["leaderEpoch"]))["leaderId"]
        return next(node for node in NODES if node != active)

    def kill(self, node: int) -> None:
        child = self.running.pop(node)
        child.process.kill()
        child.process.wait()

    @contextmanager
    def paused(self, *nodes: int) -> Iterator[None]:
        pids = [self.running[node].process.pid for node in nodes]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    @contextmanager
    def cut_off(self, node: int) -> Iterator[None]:
        """It hears nothing of what the controllers decide, and they nothing of it. Clients reach
        it, and it goes on to answer them."""
        cut = [road for ends, road in self.roads.items() if node in ends]
        try:
            for road in cut:
                for kind in METADATA:
                    road.close_to(kind)
            yield
        finally:
            for road in cut:
                for kind in METADATA:
                    road.open_to(kind)


QUORUM_STATE: Final = Path("data", "__cluster_metadata-0", "quorum-state")


@contextmanager
def three_brokers(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield _started(folder, stack)


def _started(folder: Path, stack: ExitStack) -> Cluster:
    """A port that was free may be another's when a broker binds it: then anew, with others."""
    for left in reversed(range(STARTS)):
        cluster = _made(folder / f"start{left}", stack)
        stack.callback(cluster.end)
        try:
            cluster.start(*NODES)
        except StackError:
            if not left:
                raise
            cluster.end()
            continue
        eventually(cluster.whole, within_s=MOVE_WITHIN_S)
        return cluster
    raise AssertionError("the last try raises or returns")


def _made(folder: Path, stack: ExitStack) -> Cluster:
    java = find_java()
    jars.retrieve_all(java=java, progress=lambda progress: None)
    kinds = ("kafka", "controller")
    ports = pick({f"{kind}{node}": 0 for kind in kinds for node in NODES})
    roads = {
        (asks, asked): stack.enter_context(LossyRoad(ports[f"controller{asked}"]))
        for asks in NODES
        for asked in NODES
        if asks != asked
    }
    specs = {
        node: _spec(
            broker.Broker(
                java=java,
                jars=jars.jar_set(jars.KAFKA),
                folder=folder / str(node),
                port=ports[f"kafka{node}"],
                controller_port=ports[f"controller{node}"],
                settings={**SETTINGS, **_quorum(node, ports, roads)},
                format_options=("--cluster-id", CLUSTER_ID),
            ),
            node,
        )
        for node in NODES
    }
    return Cluster(specs=specs, folder=folder, roads=roads)


def create(admin: KafkaAdmin, topic: str, *replicas: int, **config: str) -> str:
    """One partition, which the first of `replicas` leads; its id, as soon as all tell it."""
    create_missing(admin, [NewTopic(topic, 1, replica_assignment=[[*replicas]], config=config)])
    eventually(lambda: _told(admin, topic) is not None, within_s=MOVE_WITHIN_S)
    found = _told(admin, topic)
    assert found is not None
    return found


def delete(admin: KafkaAdmin, topic: str) -> None:
    admin.client.delete_topics([topic])[topic].result()
    eventually(lambda: not any(map(admin.identify, [[topic]] * ASKED)), within_s=MOVE_WITHIN_S)


def _told(admin: KafkaAdmin, topic: str) -> str | None:
    """Each question goes to any of the brokers."""
    try:
        admin.ends(topic, [0])
        told = {admin.identify([topic])[topic].topic_id for _ in range(ASKED)}
    except (Retryable, KeyError):
        return None
    return told.pop() if len(told) == 1 else None


def _quorum(node: int, ports: Mapping[str, int], roads: Roads) -> dict[str, object]:
    def port(voter: int) -> int:
        return ports[f"controller{node}"] if voter == node else roads[node, voter].port

    voters = ",".join(f"{voter}@{HOST}:{port(voter)}" for voter in NODES)
    return {"node.id": node, "controller.quorum.voters": voters}


def _spec(wanted: broker.Broker, node: int) -> ChildSpec:
    spec = broker.spec(wanted)
    command = tuple(HEAP if word == broker.HEAP else word for word in spec.command)
    return replace(spec, name=f"kafka{node}", command=command)


def _whole(seen: ClusterMetadata) -> bool:
    partitions = [p for topic in seen.topics.values() for p in topic.partitions.values()]
    copied = all(len(p.isrs) == len(p.replicas) for p in partitions)
    return len(seen.brokers) == len(NODES) and copied
