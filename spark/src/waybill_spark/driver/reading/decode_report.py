"""What a pass over the inputs of a stage has met, and what follows for the batch."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from py4j.java_gateway import JavaObject

from waybill_shared.contract.errors import ContractError
from waybill_shared.contract.manifest.columns import unknown_field
from waybill_shared.contract.words import DeadReason
from waybill_spark.driver.reading.decode import count_name, observation
from waybill_spark.driver.reading.ignored import Ignored
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.tracking.dead_letters.records import RejectedRecord


class MalformedRecord(ContractError):
    """A record that is not of its input's schema, with the first one's position."""

    def __init__(
        self, source: DecodedInput, count: int, partition: int, offset: int, text: str
    ) -> None:
        self.position = f"{source.topic}[{partition}]@{offset}"
        self.input_name = source.name
        super().__init__(
            f"input {source.name}: {count} record(s) do not fit its schema; the first is"
            f" {self.position}: {text}"
        )


class RuleBroken(ContractError):
    """A record that breaks a rule of its input, which says that the stage ends then."""

    def __init__(self, source: DecodedInput, rule: str, count: int, position: str) -> None:
        super().__init__(
            f"input {source.name}: {count} record(s) break rule {rule}; the first is {position}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The records that one pass has seen of one input.

    `dead`: the places of records that go to a dead-letter topic. `counts`: how many records have
    each other verdict. `unknown`: names of fields that are no columns. `ignored`: how many records
    have such fields.
    """

    records: int
    largest: int
    counts: Mapping[int, int]
    dead: tuple[RejectedRecord, ...]
    ignored: int
    unknown: tuple[str, ...]


def look(execution: JavaObject, sources: Sequence[DecodedInput]) -> dict[str, Seen]:
    """Return what a finished execution has seen of the inputs that it read, by input.

    Raise MalformedRecord or RuleBroken if such a record ends the stage.
    """
    metrics = execution.observedMetrics()
    found: dict[str, Seen] = {}
    for source in sources:
        observed = metrics.get(observation(source))
        if observed.isDefined():
            seen = json.loads(observed.get().getString(0))
            counts = {verdict: seen[count_name(verdict)] for verdict in source.counted}
            _refuse(source, counts, seen.get("first"))
            found[source.name] = Seen(
                records=seen["records"],
                largest=seen.get("largest", 0),
                counts=counts,
                dead=tuple(
                    RejectedRecord(
                        topic=source.topic, partition=partition, offset=offset, verdict=verdict
                    )
                    for partition, offset, verdict in sorted(seen.get("dead", ()))
                ),
                ignored=seen["ignored"],
                unknown=(*seen.get("some", ()), *seen.get("others", ())),
            )
    return found


def find_unjudged(
    execution: JavaObject, sources: Iterable[DecodedInput], seen: Mapping[str, Seen]
) -> list[DecodedInput]:
    """Return the inputs of a query that nobody has looked at, because Spark has left them out."""
    unseen = [source for source in sources if source.name not in seen]
    if not unseen:
        return []
    plan = execution.analyzed().toString()
    return [source for source in unseen if f"CollectMetrics {observation(source)}," in plan]


def count_verdicts(
    sources: Sequence[DecodedInput], seen: Mapping[str, Seen], action: Literal["drop", "warn"]
) -> Iterator[tuple[str, str, int]]:
    """Yield input, name and number of records with a verdict that leads to `action`."""
    for source in sources:
        if source.name in seen:
            names = (DeadReason.MALFORMED, *(rule.name for rule in source.rules))
            counts = seen[source.name].counts
            for verdict in source.verdicts(action):
                if counts[verdict]:
                    yield source.name, names[verdict], counts[verdict]


def remember(
    sources: Sequence[DecodedInput], seen: Mapping[str, Seen], sizes: RecordSizes, ignored: Ignored
) -> None:
    """Remember how large the records are, and how many are left out without a dead letter."""
    for source in sources:
        found = seen.get(source.name)
        if found is not None:
            sizes.count(records=found.records, largest=found.largest)
            ignored.count_unknown(source.name, found.ignored, _warnings(source, found.unknown))
    for name, rule, count in count_verdicts(sources, seen, "drop"):
        ignored.count_dropped(name, rule, count)
    for name, rule, count in count_verdicts(sources, seen, "warn"):
        ignored.count_warned(name, rule, count)


def _warnings(source: DecodedInput, names: Sequence[str]) -> Iterator[str]:
    columns = source.columns_to_parse() if names else ()
    for name in names:
        warning = unknown_field(columns, {name: None})
        if warning is not None:
            yield warning


def _refuse(source: DecodedInput, counts: Mapping[int, int], first: dict[str, Any] | None) -> None:
    if first is None:
        return
    verdict, partition, offset = first["verdict"], first["partition"], first["offset"]
    count = counts[verdict]
    if verdict == 0:
        raise MalformedRecord(source, count, partition, offset, first.get("text", ""))
    rule = source.rules[verdict - 1]
    raise RuleBroken(source, rule.name, count, f"{source.topic}[{partition}]@{offset}")
