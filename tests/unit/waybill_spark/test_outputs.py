"""What fences and commits say of where rows stand: all of it in the last one, too."""

from functools import reduce

from waybill_shared.contract.events import Gap, Output
from waybill_spark.tracking.outputs import GAPS_MAX, Placed, SinkTopic, outputs_after

TO = SinkTopic(topic="t", topic_id="A")


NOTHING: tuple[Output, ...] = ()


def after(*batches: Placed) -> dict[int, Output]:
    outputs = reduce(lambda known, placed: outputs_after(known, placed, TO), batches, NOTHING)
    return {output.partition: output for output in outputs}


def gaps(output: Output) -> list[tuple[int, int]]:
    return [(gap.start, gap.end) for gap in output.gaps]


def test_marker_between_two_batches_is_a_gap() -> None:
    """The report of the first may be lost, and its marker is no row of the second."""
    output = after({0: (0, 3)}, {0: (4, 6)})[0]
    assert (output.first, output.end, gaps(output)) == (4, 6, [(3, 4)])


def test_what_stands_before_the_first_batch_is_a_gap() -> None:
    assert gaps(after({0: (5, 7)})[0]) == [(0, 5)]


def test_gaps_are_told_by_every_later_batch() -> None:
    found = after({0: (0, 3)}, {0: (6, 7), 1: (0, 1)}, {0: (8, 9)}, {1: (2, 3)})
    assert {at: (o.first, o.end, gaps(o)) for at, o in found.items()} == {
        0: (9, 9, [(3, 6), (7, 8)]),
        1: (2, 3, [(1, 2)]),
    }


def test_the_newest_gaps_are_kept() -> None:
    """A topic that others write all the time makes no fence large."""
    found = after(*({0: (9 * n, 9 * n + 1)} for n in range(100)))[0]
    assert gaps(found) == [(9 * n - 8, 9 * n) for n in range(100 - GAPS_MAX, 100)]


def test_what_stood_there_before_the_sink_is_kept_too() -> None:
    """Retention takes it first: told as rows of unknown batches, all of those would be lost."""
    found = after(*({0: (9 * n, 9 * n + 1)} for n in range(1, 100)))[0]
    assert gaps(found) == [(0, 9), *((9 * n - 8, 9 * n) for n in range(100 - GAPS_MAX, 100))]


def test_topic_that_is_gone_keeps_what_was_said_of_it() -> None:
    gone = Output(
        topic="t", topic_id="old", partition=0, first=1, end=2,
        gaps=(Gap(start=0, end=1),),
    )  # fmt: skip
    assert outputs_after((gone,), {0: (0, 1)}, TO) == (gone, after({0: (0, 1)})[0])
