"""Lists what a changed manifest would change in the inputs of a pipeline."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from waybill_shared.contract.manifest.inputs import Expectation, Input
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.column_changes import column_texts

READ_SO: Final = "records that are processed from now on are read so"


def input_changes(before: Iterable[Input], now: Iterable[Input]) -> Iterator[Change]:
    by_name = {each.name: each for each in before}
    names = {each.name for each in now}
    by_topic = {each.kafka.topic: each for each in by_name.values() if each.name not in names}
    for each in now:
        old = by_name.pop(each.name, None)
        if old is None and (old := by_topic.get(each.kafka.topic)) is not None:
            del by_name[old.name]
            message = f"~ input {each.name}: was called {old.name}; its topic stays"
            yield Change(kind="rename_input", path=f"inputs.{each.name}", message=message)
        if old is None:
            message = f"+ input {each.name}: reads topic {each.kafka.topic}"
            yield Change(kind="add_input", path=f"inputs.{each.name}", message=message)
        else:
            yield from _input(old, each)
    for name, removed in by_name.items():
        message = (
            f"- input {name}: topic {removed.kafka.topic} is no input any more; the topic stays"
        )
        yield Change(kind="remove_input", path=f"inputs.{name}", message=message)


def _of_writes(old: Input, now: Input) -> Iterator[str]:
    """Yield the changes that only concern records written over HTTP."""
    if old.key != now.key:
        yield f"key is {now.key or 'none'}, was {old.key or 'none'}; for new records"
    if old.deletes != now.deletes:
        marks = [each.column if each else "none" for each in (now.deletes, old.deletes)]
        yield f"deletes are marked by {marks[0]}, was {marks[1]}; for new records"


def _of_connectors(old: Input, now: Input) -> Iterator[str]:
    before, after = ({each.name: each for each in source.connectors} for source in (old, now))
    for name, each in after.items():
        was = before.get(name)
        if was is None or was.url != each.url:
            yield f"connector {name} fetches {each.url.partition('?')[0]}"
        elif was != each:
            yield f"connector {name} changed; no effect on what was fetched"
    for name in before:
        if name not in after:
            yield f"connector {name} removed; what it has written stays"


def _input(old: Input, now: Input) -> Iterator[Change]:
    said = [f"{text}; {READ_SO}" for text in column_texts(_columns_of(old), _columns_of(now))]
    if old.format != now.format:
        said.append(f"format is {now.format}, was {old.format}; {READ_SO}")
    elif old.form() != now.form():
        said.append(f"how its {now.format} is written changed; {READ_SO}")
    if old.kafka.topic != now.kafka.topic:
        said.append(f"reads topic {now.kafka.topic}, was {old.kafka.topic}")
    said += _of_writes(old, now)
    said += _of_connectors(old, now)
    if old.kafka.partitions != now.kafka.partitions:
        said.append("partitions changed; no effect on a topic that exists")
    if old.on_unknown_field != now.on_unknown_field:
        said.append(f"onUnknownField is {now.on_unknown_field}, was {old.on_unknown_field}")
    if old.starting_offsets != now.starting_offsets:
        said.append(
            f"startingOffsets is {now.starting_offsets}, was {old.starting_offsets};"
            " no effect on stages that go on"
        )
    if old.on_malformed != now.on_malformed:
        said.append(f"onMalformed is {now.on_malformed}, was {old.on_malformed}")
    said += _rule_texts(old.expectations, now.expectations)
    for text in said:
        message = f"~ input {now.name}: {text}"
        yield Change(kind="change_input", path=f"inputs.{now.name}", message=message)


def _rule_texts(old: Sequence[Expectation], now: Sequence[Expectation]) -> Iterator[str]:
    before, after = ({rule.name: rule for rule in rules} for rules in (old, now))
    for name, rule in after.items():
        if name not in before:
            yield f"rule {name} added ({rule.on_violation})"
            continue
        was = before[name]
        if was.expect != rule.expect:
            yield f"rule {name} changed"
        if was.on_violation != rule.on_violation:
            yield f"rule {name}: onViolation is {rule.on_violation}, was {was.on_violation}"
    yield from (f"rule {name} removed" for name in before if name not in after)
    if before.keys() == after.keys() and [*before] != [*after]:
        yield "order of rules changed"


def _columns_of(source: Input) -> dict[str, str]:
    return {
        each.name: f"{each.type} NOT NULL" if each.required else each.type
        for each in source.list_columns()
    }
