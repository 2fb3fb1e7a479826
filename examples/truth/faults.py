"""Four faults. Each happens to an ordinary PySpark program and to Waybill, on the same records.

A finding is made of what was read from the sinks and of what was answered, of nothing else.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from examples.truth.report import Finding, records, unmet
from examples.truth.scene import Scene, said, told
from examples.truth.topics import cut_off, order, size
from waybill import Outcome, Span


def unparsable_record(scene: Scene) -> Finding:
    topic, bad = "orders_1", 6
    waybill = scene.both(topic)
    readable = [number for number in range(10) if number != bad]
    sent = scene.topics.produce(topic, [cut_off(n) if n == bad else order(n) for n in range(10)])
    place = f"{topic}[0]@{sent.start + bad}"
    truth = f"{size(sent)} records; {size(sent) - len(readable)} cannot be read: {place}"
    scene.tell_truth(truth)
    token = waybill.token(sent)
    waybill.start()
    run = scene.let_bare_run(topic)
    outcome = waybill.wait(token)
    scene.tell_waybill(outcome)
    rows = waybill.numbers()
    waybill.stop()
    buried = scene.topics.values(f"{topic}.dlq")
    demands = {
        "the token is dead_lettered": outcome.kind == "dead_lettered",
        f"it names {place}": _dead(outcome) == [(topic, 0, sent.start + bad)],
        "the dead-letter topic has the record as it was": buried == [cut_off(bad)],
        "each readable record is in the table, once": _exactly(readable, rows),
    }
    return Finding(
        truth=(truth,),
        bare=(said(run), records(readable, "readable records", scene.bare.numbers(topic))),
        waybill=(told(outcome), records(readable, "readable records", rows)),
        wrong=unmet(demands),
    )


def killed_between_commits(scene: Scene) -> Finding:
    topic, numbers = "orders_2", range(10)
    waybill = scene.both(topic)
    sent = scene.produce(topic, numbers)
    token = waybill.token(sent)
    waybill.hold_after_commit()
    waybill.start()
    scene.bare.run_until_appended(topic)
    scene.bare.kill()
    waybill.kill_held_driver()
    truth = f"{size(sent)} records; killed when they were in the table and Spark had not noted it,"
    truth += " then started again"
    scene.tell_truth(truth)
    scene.bare.start()
    run = scene.let_bare_run(topic)
    outcome = waybill.wait(token)
    scene.tell_waybill(outcome)
    rows = waybill.numbers(outcome)
    waybill.stop()
    demands = {
        "the token is complete": outcome.kind == "complete",
        "each row is in the table, once": _exactly(numbers, rows),
    }
    return Finding(
        truth=(truth,),
        bare=(said(run), records(numbers, "records", scene.bare.numbers(topic))),
        waybill=(told(outcome), records(numbers, "records", rows)),
        wrong=unmet(demands),
    )


def topic_created_again(scene: Scene) -> Finding:
    topic, taken, unread, new = "orders_3", range(50), range(50, 55), range(1000, 1080)
    waybill = scene.both_took(topic, taken)
    gone = scene.produce(topic, unread)
    gone_token = waybill.token(gone)
    scene.topics.create_again(topic)
    sent = scene.produce(topic, new)
    truth = f"{len(taken)} records were taken, {size(gone)} not yet, when the topic was deleted;"
    truth += f" the new one holds {size(sent)}"
    scene.tell_truth(truth)
    starting = waybill.start()
    run = scene.let_bare_run(topic)
    why, lost = waybill.failure(starting), waybill.wait(gone_token)
    scene.tell_waybill(why, lost)
    waybill.done(waybill.restart_from_earliest())
    outcome = waybill.wait(waybill.token(sent))
    scene.tell_waybill(outcome)
    rows = waybill.numbers(outcome)
    waybill.stop()
    demands = {
        "it says topic_recreated": "topic_recreated" in why,
        "exactly what was not taken is lost": _lost(lost, "topic_recreated", gone),
        "the new records are complete": outcome.kind == "complete",
        "each row is in the table, once": _exactly([*taken, *new], rows),
    }
    return Finding(
        truth=(truth,),
        bare=(said(run), records(new, "new records", scene.bare.numbers(topic))),
        waybill=(
            f"stops: {why}",
            f"the {size(gone)} not taken: {told(lost)}",
            f"after restart --from earliest: {told(outcome)}",
            records(new, "new records", rows),
        ),
        wrong=unmet(demands),
    )


def retention_passed(scene: Scene) -> Finding:
    topic, taken, unread = "orders_4", range(20), range(20, 30)
    waybill = scene.both_took(topic, taken)
    removed, left = scene.produce(topic, unread[:5]), scene.produce(topic, unread[5:])
    removed_token, left_token = waybill.token(removed), waybill.token(left)
    scene.topics.remove_records(topic, before=left.start)
    truth = f"retention removed {size(removed)} of {len(unread)} records that were not read yet"
    scene.tell_truth(truth)
    starting = waybill.start()
    default = {said(scene.let_bare_run(topic)) for _ in range(2)}
    run = scene.let_bare_run(topic, failOnDataLoss="false")
    why, lost = waybill.failure(starting), waybill.wait(removed_token)
    scene.tell_waybill(why, lost)
    waybill.done(waybill.start())
    outcome = waybill.wait(left_token)
    scene.tell_waybill(outcome)
    rows = waybill.numbers(outcome)
    waybill.stop()
    demands = {
        "it says retention_passed": "retention_passed" in why,
        "exactly what was removed is lost": _lost(lost, "retention_passed", removed),
        "what is left is complete": outcome.kind == "complete",
        "each row is in the table, once": _exactly([*taken, *unread[5:]], rows),
    }
    return Finding(
        truth=(truth,),
        bare=(
            *(f"at both starts: {words}" for words in default),
            f"failOnDataLoss=false: {said(run)}",
            records(unread, "unread records", scene.bare.numbers(topic)),
        ),
        waybill=(
            f"stops: {why}",
            f"the {size(removed)} removed: {told(lost)}",
            f"after the next start, the {size(left)} left: {told(outcome)}",
            records(unread, "unread records", rows),
        ),
        wrong=unmet(demands),
    )


FAULTS: Final[Mapping[str, Callable[[Scene], Finding]]] = {
    "a record that does not parse": unparsable_record,
    "kill -9 between the sink's commit and Spark's": killed_between_commits,
    "the topic is deleted and created again": topic_created_again,
    "retention passes the reader": retention_passed,
}


def _lost(outcome: Outcome, reason: str, span: Span) -> bool:
    """Whether exactly `span` is lost, for that reason."""
    spans = [(lost.reason, lost.topic, lost.start, lost.end) for lost in outcome.lost]
    return outcome.kind == "lost" and spans == [(reason, span.topic, span.start, span.end)]


def _dead(outcome: Outcome) -> list[tuple[str, int, int]]:
    return [(dead.topic, dead.partition, dead.offset) for dead in outcome.dead]


def _exactly(numbers: Iterable[int], rows: Iterable[int | None]) -> bool:
    return sorted(map(str, rows)) == sorted(map(str, numbers))
