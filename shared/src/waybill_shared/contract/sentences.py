"""The sentences that people read of an outcome in the console, as `words` has the words.

None of them may say more than the answer does: of a token of which something died or was dropped
nothing is said of all of it.
"""

from enum import StrEnum


class Sentence(StrEnum):
    """Figures, places and words with their meanings go into the braces."""

    ACCEPTED = "{records} accepted {at}{then}."
    AGO = ", {took} ago"
    ALL_VISIBLE = ", all visible after {took}"
    REST_VISIBLE = ", {without}, the rest visible after {took}"
    WITHOUT = ", {without}"
    REASON = "Reason: {why}."
    DEAD = "{number} dead"
    DROPPED = "{number} dropped"
    UP_TO = "up to {number}"
    ABOUT = "about {number}"
    SINK_HAS_ALL = "visible {at} after {took}"
    SINK_HAS_REST = "the rest visible {at} after {took}"
    SINK_MAY_HAVE = "written {at} after {took}"
    IN_BATCH = "{took} of it in the batch"
    IN_BATCH_OF = "{took} of it in the batch of {rows}"
    EACH_ROW = "each row {often}"
    REWINDING = "older rows may be seen now: its stage reads records again"
    MAYBE_REWINDING = "maybe older rows are seen: if its stage reads again is not known now"
    NO_BATCH = "no batch had to bring it"
    STILL_TO_COME = "{records} still to come"
    BLOCKED = "{stage} is blocked: {why}."
    DEAD_LETTERS = "Dead letters: {number}"
    ONLY_SINK_LACKS = "only {sink} lacks it"
    SENT_AGAIN = "Replayed by {place}."
    LEFT_OUT = "{records} dropped by rule {rule} in {stage}"
