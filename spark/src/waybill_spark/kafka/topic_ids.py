"""Which topic has a name, surely enough to call records lost."""

import time
from collections.abc import Mapping
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin

OTHER_ID_S: Final = 3.0
"""Less than for absence: brokers learn of a new topic within about a second, and nobody can write
to it before.
"""
POLL_S: Final = 0.1
"""Any broker may get a question. Of so many, one that has lost the others does not get all."""


def sure_ids(admin: KafkaAdmin, wanted: Mapping[str, str], *, absent_s: float) -> dict[str, str]:
    """Return the ids by name of topics that had those of `wanted`; those that do not exist are left
    out.

    A topic is absent only if it stays absent for a while, because then data counts as lost. A
    broker that has just started, or lost the others, does not know every topic.

    The same is true of another id: a broker that lags reports one that the topic had before, maybe
    before this pipeline. That is waited for no longer than for absence.
    """
    deadline = time.monotonic() + absent_s
    others: dict[str, float] = {}  # when to believe it; by the topics reported with another id
    while True:
        found = {name: each.topic_id for name, each in admin.identify(wanted).items()}
        now = time.monotonic()
        for topic, topic_id in found.items():
            if topic_id != wanted[topic]:
                others.setdefault(topic, now + min(absent_s, OTHER_ID_S))
            elif topic in others:
                raise Retryable(f"topic {topic}: brokers do not agree on its id")
        absent = wanted.keys() - found.keys()
        if not (absent and now <= deadline) and all(now >= at for at in others.values()):
            break
        time.sleep(POLL_S)
    for topic in sorted(absent):
        if not admin.absent(topic):
            raise Retryable(f"topic {topic}: the controller has it, a broker does not know it")
    return found
