"""Looks at and creates the topics of pipelines, and reads where they start and end.

Fulfils `Topics`.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from confluent_kafka.admin import NewTopic

from waybill_shared.access.kafka import lacking, uncreatable
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.grants import KafkaOperation
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.majority import ASKED_AGAIN, lowest
from waybill_shared.kafka.topics import create_missing
from waybill_stage_runner.core.pipelines.planning import TopicPlan, TopicState
from waybill_stage_runner.core.pipelines.putting import ReplaysTopic

NEW_TOPIC_TIMEOUT_S: Final = 10.0
NEW_TOPIC_POLL_S: Final = 0.02


class KafkaTopics:
    def __init__(self, admin: KafkaAdmin, *, prefix: str, replication: int) -> None:
        self._admin = admin
        self._prefix = prefix
        self._replication = replication

    def ids(self, plans: Iterable[TopicPlan]) -> Mapping[str, str]:
        wanted = self._merge_plans(plans)
        return {name: found.topic_id for name, found in self._identify(wanted).items()}

    def prepare(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicState]:
        wanted = self._merge_plans(plans)
        present = self._identify(wanted)
        missing = [
            NewTopic(plan.topic, plan.partitions, self._replication)
            for plan in wanted.values()
            if plan.topic not in present
        ]
        if not missing:
            return self._states(present, wanted)
        create_missing(self._admin, missing)
        return self._await_new(wanted)

    def replays(self) -> ReplaysTopic:
        name = f"{self._prefix}.replays"
        found = self._identify([name]).get(name)
        if found is None:
            raise Retryable(f"topic {name}: a broker does not know it")
        starts = self._admin.starts(name, found.partitions)
        ends = self._admin.stable_ends(name, found.partitions)
        limits = {p: (starts[p], ends[p]) for p in found.partitions}
        return ReplaysTopic(name=name, topic_id=found.topic_id, ends=limits)

    def starts_at(
        self, topics: Mapping[str, TopicState], at_ms: int
    ) -> Mapping[str, Mapping[int, int]]:
        return {
            name: self._admin.starts_at(name, state.ends, at_ms) for name, state in topics.items()
        }

    def _merge_plans(self, plans: Iterable[TopicPlan]) -> Mapping[str, TopicPlan]:
        """Return the plans by topic. Raises UserError if a pipeline may not use one of them."""
        wanted = {plan.topic: plan for plan in plans}
        for topic in wanted:
            if topic.startswith(f"{self._prefix}."):
                message = f"topic {topic}: names with {self._prefix}. are Waybill's own"
                raise UserError([Problem(message=message, hint="choose another name")])
        self._refuse_without_rights(wanted)
        return wanted

    def _refuse_without_rights(self, wanted: Mapping[str, TopicPlan]) -> None:
        """Raise UserError if rights are missing: no pipeline is better than one that fails at its
        first batch.
        """
        rights: dict[str, tuple[KafkaOperation, ...]] = {
            topic: ("Read", "Write") if plan.written else ("Read",)
            for topic, plan in wanted.items()
        }
        dead = {each.dead_letters for each in wanted.values() if each.dead_letters is not None}
        rights |= dict.fromkeys(sorted(dead), ("Write",))
        problems = [*lacking(self._admin, "topic", rights)] or [*uncreatable(self._admin, dead)]
        if problems:
            raise UserError(problems)

    def _await_new(self, wanted: Mapping[str, TopicPlan]) -> dict[str, TopicState]:
        """Wait until every broker knows the topics that were just created. Raises Retryable."""
        deadline = time.monotonic() + NEW_TOPIC_TIMEOUT_S
        while True:
            try:
                present = self._identify(wanted)
                if present.keys() == wanted.keys():
                    return self._states(present, wanted)
            except Retryable:
                pass  # its partitions have no leader yet
            if time.monotonic() > deadline:
                names = ", ".join(sorted(wanted))
                raise Retryable(
                    f"topics {names} are not there {NEW_TOPIC_TIMEOUT_S} s after creation"
                )
            time.sleep(NEW_TOPIC_POLL_S)

    def _identify(self, topics: Iterable[str]) -> dict[str, TopicIdentity]:
        """Return the ids of the topics that exist. Raises Retryable if two answers differ.

        Each question goes to any broker, and one that lags may answer with a deleted topic. What a
        pipeline counts as lost because of such an answer is lost for good.
        """
        wanted = frozenset(topics)
        found = self._admin.identify(wanted)
        for _ in range(ASKED_AGAIN):
            if self._admin.identify(wanted) != found:
                raise Retryable(f"brokers do not agree on topics {', '.join(sorted(wanted))}")
        return found

    def _states(
        self, present: Mapping[str, TopicIdentity], wanted: Mapping[str, TopicPlan]
    ) -> dict[str, TopicState]:
        """Return where readers start and end. What lies before the start is lost for them."""

        def read(admin: KafkaAdmin) -> dict[tuple[str, str, int], int]:
            return {
                (name, side, partition): offset
                for name, identity in present.items()
                for side, offsets in _sides(admin, identity, wanted[name])
                for partition, offset in offsets.items()
            }

        found = lowest(self._admin, read)
        return {
            name: TopicState(
                topic_id=identity.topic_id,
                starts={p: found[name, "start", p] for p in identity.partitions},
                ends={p: found[name, "end", p] for p in identity.partitions},
            )
            for name, identity in present.items()
        }


def _sides(
    admin: KafkaAdmin, topic: TopicIdentity, plan: TopicPlan
) -> Iterator[tuple[str, Mapping[int, int]]]:
    # The latest offset of a reader of committed records: open transactions come when they are
    # closed.
    read = admin.stable_ends if plan.starting == "latest" else admin.starts
    yield "start", read(topic.name, topic.partitions)
    yield "end", admin.ends(topic.name, topic.partitions)
