"""How long a consumer may be outside its group."""

from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.membership import REJOIN_MAX_S, Membership


class Broker(KafkaAdmin):
    def __init__(self) -> None:
        self.away = False

    def reachable(self) -> str | None:
        return "no broker" if self.away else None


class Elapsed:
    now = 0.0


def outside(membership: Membership) -> bool:
    try:
        membership.check()
    except RuntimeError:
        return True
    return False


def test_time_outside_the_group_counts_from_when_kafka_is_back() -> None:
    broker, elapsed = Broker(), Elapsed()
    membership = Membership(broker, now=lambda: elapsed.now)
    membership.joined()
    membership.left()
    broker.away = True
    elapsed.now += REJOIN_MAX_S
    assert not outside(membership)
    broker.away = False
    elapsed.now += REJOIN_MAX_S - 1
    assert not outside(membership)
    elapsed.now += 1
    assert outside(membership)


def test_a_member_without_a_part_is_inside() -> None:
    elapsed = Elapsed()
    membership = Membership(Broker(), now=lambda: elapsed.now)
    membership.joined()
    elapsed.now += 10 * REJOIN_MAX_S
    assert not outside(membership)
