"""Makes the entry of one dead letter, at the position that a token has. Pure.

That is where its record was, or, if it died in a replay, the message that asked for the replay.
"""

from waybill_shared.contract.dead_letter_facts import DeadLetter
from waybill_shared.contract.replays import entrance
from waybill_shared.contract.slots import DeadEntry, DeadSource


def entry_of(stage: str, letter: DeadLetter) -> DeadEntry:
    """Return the entry. `stage`: the key of the stage that reports the letter."""
    at = letter.replayed or letter
    place = f"{at.topic_id}:{at.partition}:{at.offset}"
    replayed = letter.replayed is not None
    return DeadEntry(
        id=f"{letter.sink or stage}:{place}",
        stage=stage,
        sink=letter.sink,
        topic_id=entrance(at.topic_id, stage) if replayed else at.topic_id,
        partition=at.partition,
        start=at.offset,
        end=at.offset + 1,
        reason=letter.reason,
        rule=letter.rule,
        message=letter.message,
        dead_topic=letter.dead_topic,
        dead_partition=letter.dead_partition,
        dead_offset=letter.dead_offset,
        source=_source(letter) if replayed else None,
    )


def _source(letter: DeadLetter) -> DeadSource:
    return DeadSource(
        topic=letter.topic,
        topic_id=letter.topic_id,
        partition=letter.partition,
        offset=letter.offset,
    )
