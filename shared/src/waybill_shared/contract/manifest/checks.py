"""What is wrong with a manifest beyond its form: names, topics, views, cycles."""

from collections.abc import Iterable, Iterator, Mapping

from waybill_shared.contract.connectors import NUMBERED
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.columns import NESTED, Column
from waybill_shared.contract.manifest.document import Path
from waybill_shared.contract.manifest.endings import find_ending_problems
from waybill_shared.contract.manifest.fields import TOPIC_CHARACTERS_MAX
from waybill_shared.contract.manifest.formats import FORMATS, SCHEMA_CHARACTERS_MAX, formats_with
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.renames import rename_problems
from waybill_shared.contract.suggestions import hint_of_names
from waybill_shared.contract.words import DeadReason

Located = tuple[Path, Problem]
SHARED = "inputs and sinks share one space of names; so do the inputs and steps of a stage"


def find_problems(manifest: Manifest, reserved: str | None) -> list[Located]:
    """Return what is wrong with the manifest. Topics with names that start with `reserved` and a
    dot are Waybill's own.
    """
    names = _name_problems(manifest)
    found = [
        *_schema_problems(manifest),
        *names,
        *_rule_problems(manifest),
        *_connector_problems(manifest),
        *_topic_problems(manifest, reserved),
        *_target_problems(manifest),
        *find_ending_problems(manifest),
        *rename_problems(manifest),
    ]
    if not names:  # else what reads that name may be wrong for that alone
        found += _source_problems(manifest)
    return found or _cycle_problems(manifest)


def own_topic_problem(topic: str, reserved: str | None) -> Problem | None:
    """Return what is wrong with a topic that no pipeline may have; None if nothing is."""
    for start, whose in (("__", "Kafka"), (f"{reserved}.", "Waybill")):
        if topic.startswith(start):
            message = f"topic {topic!r} is one of {whose}'s own"
            hint = f"take a name that does not begin with {start}"
            return Problem(message=message, hint=hint)
    return None


def _schema_problems(manifest: Manifest) -> Iterator[Located]:
    for i, source in enumerate(manifest.inputs):
        here = ("inputs", i)
        misplaced = [*_find_misplaced_keys(source)]
        yield from (((*here, key), problem) for key, problem in misplaced)
        if misplaced:
            continue
        at = (*here, FORMATS[source.format].needs or "format")
        try:
            columns = source.list_columns()
            if len(source.declared or "") > SCHEMA_CHARACTERS_MAX:
                message = f"its columns have more than {SCHEMA_CHARACTERS_MAX} characters"
                yield at, Problem(message=message, hint="leave out columns that nobody reads")
        except UserError as error:
            yield from ((at, problem) for problem in error.problems)
            continue
        yield from ((at, problem) for problem in _no_fields(source, columns))
        names = [column.name for column in columns]
        if source.key is not None and source.key not in names:
            message = f"key {source.key!r} is not a column"
            hint = hint_of_names(source.key, names, "columns")
            yield (*here, "key"), Problem(message=message, hint=hint)
        if source.deletes is not None:
            problem = _no_mark(source.deletes.column, source, columns)
            if problem is not None:
                yield (*here, "deletes", "column"), problem


def _no_mark(name: str, source: Input, columns: Iterable[Column]) -> Problem | None:
    """Return what is wrong with a column that marks rows as deleted; None if nothing is."""
    types = {column.name: column.type for column in columns}
    if name not in types:
        hint = hint_of_names(name, list(types), "columns")
        return Problem(message=f"deletes: {name!r} is not a column", hint=hint)
    if types[name] != "BOOLEAN":
        message = f"deletes: column {name!r} is {types[name]}, no BOOLEAN"
        return Problem(message=message, hint="take a column of its own, such as `gone BOOLEAN`")
    if name == source.key:
        return Problem(message=f"deletes: {name!r} is the key", hint="take a column of its own")
    return None


def _find_misplaced_keys(source: Input) -> Iterator[tuple[str, Problem]]:
    """Yield a problem for each key that the format needs and lacks, and for each that it does not
    accept.
    """
    given, row = source.model_dump(by_alias=True, exclude_unset=True), FORMATS[source.format]
    if row.needs is not None and given.get(row.needs) is None:
        message = f"{row.needs!r} is missing: an input of format {source.format} has one"
        hint = f"for example {row.needs}: {row.examples[row.needs]}"
        yield row.needs, Problem(message=message, hint=hint)
    for key in given:
        formats = formats_with(key)
        if source.format not in formats:
            message = f"{key!r} does not go with format {source.format}"
            hint = row.hints.get(key, f"it goes with {', '.join(formats)}")
            yield key, Problem(message=message, hint=hint)


def _no_fields(source: Input, columns: Iterable[Column]) -> Iterator[Problem]:
    for column in () if FORMATS[source.format].nested else columns:
        if column.type.startswith(tuple(NESTED)):
            kind, form = column.type.split("<")[0], source.format.upper()
            message = f"column {column.name!r}: a field of {form} is no {kind}"
            yield Problem(message=message, hint="take STRING, or another format")


def _name_problems(manifest: Manifest) -> list[Located]:
    """Find names that are used twice. Inputs and sinks share one namespace, because a stage may
    read both.
    """
    found: list[Located] = []
    seen: set[str] = set()
    stages: set[str] = set()

    def claim(name: str, used: set[str], path: Path) -> None:
        if name in used:
            found.append((path, Problem(message=f"the name {name!r} is used already", hint=SHARED)))
        used.add(name)

    for i, source in enumerate(manifest.inputs):
        claim(source.name, seen, ("inputs", i, "name"))
    for s, stage in enumerate(manifest.stages):
        claim(stage.name, stages, ("stages", s, "name"))
        for k, sink in enumerate(stage.sinks):
            claim(sink.name, seen, ("stages", s, "sinks", k, "name"))
        views: set[str] = set()
        for i, name in enumerate(stage.inputs):
            claim(name, views, ("stages", s, "inputs", i))
        for t, step in enumerate(stage.steps):
            claim(step.name, views, ("stages", s, "steps", t, "name"))
    return found


def _rule_problems(manifest: Manifest) -> list[Located]:
    """Find wrong names of rules: records are counted under the name of the rule that they break."""
    found: list[Located] = []
    for i, source in enumerate(manifest.inputs):
        seen: set[str] = set()
        for r, rule in enumerate(source.expectations):
            path = ("inputs", i, "expectations", r, "name")
            if rule.name == DeadReason.MALFORMED:
                message = f"no rule can be called {rule.name!r}"
                hint = "records that do not fit the schema are counted so"
                found.append((path, Problem(message=message, hint=hint)))
            if rule.name in seen:
                message = f"the name {rule.name!r} is used already"
                hint = "the rules of an input have different names"
                found.append((path, Problem(message=message, hint=hint)))
            seen.add(rule.name)
    return found


def _connector_problems(manifest: Manifest) -> Iterator[Located]:
    for i, source in enumerate(manifest.inputs):
        seen, urls = set[str](), set[str]()
        for c, connector in enumerate(source.connectors):
            here = ("inputs", i, "connectors", c)
            if connector.name in seen:
                message = f"the name {connector.name!r} is used already"
                hint = "the connectors of an input have different names"
                yield (*here, "name"), Problem(message=message, hint=hint)
            seen.add(connector.name)
            if NUMBERED.fullmatch(connector.name):
                if connector.url in urls:
                    hint = "give them names of their own: without one a file is known by its URL"
                    problem = Problem(message=f"{connector.url:.200} stands twice", hint=hint)
                    yield (*here, "url"), problem
                urls.add(connector.url)
            if connector.csv is not None and connector.format != "csv":
                message = f"'csv' does not go with format {connector.format}"
                yield (*here, "csv"), Problem(message=message, hint="it goes with csv")
            if connector.format != "json" and connector.update_format != "raw":
                message = f"updateFormat does not go with format {connector.format}"
                yield (*here, "updateFormat"), Problem(message=message, hint="it goes with json")


def _topic_problems(manifest: Manifest, reserved: str | None) -> list[Located]:
    """Find topics that are used twice. A topic belongs to one input or one sink, otherwise nobody
    could say how far it has been written.
    """
    found: list[Located] = []
    owner: dict[str, str] = {}
    for topic, user, path in _topics(manifest):
        own = own_topic_problem(topic, reserved)
        if own is not None:
            found.append((path, own))
        if topic in owner:
            message = f"topic {topic!r} is already that of {owner[topic]}"
            found.append((path, Problem(message=message, hint="give each its own topic")))
        owner.setdefault(topic, user)
    return [*found, *_dead_letter_problems(manifest, reserved, owner)]


def _target_problems(manifest: Manifest) -> Iterator[Located]:
    """Find targets that are used twice. Sinks of one stage write their batches at the same time,
    and would wait for each other.
    """
    owner: dict[tuple[str, str], str] = {}
    for s, stage in enumerate(manifest.stages):
        for k, sink in enumerate(stage.sinks):
            target = (sink.kind, sink.settings.target)
            if target in owner and not sink.settings.repeatable:
                message = f"{sink.settings.target} is already that of sink {owner[target]!r}"
                problem = Problem(message=message, hint="give each its own table")
                yield ("stages", s, "sinks", k, sink.kind, "table"), problem
            owner.setdefault(target, sink.name)


def _topics(manifest: Manifest) -> Iterator[tuple[str, str, Path]]:
    """Yield the topics of inputs and sinks, each with its owner and its path."""
    for i, source in enumerate(manifest.inputs):
        yield source.kafka.topic, f"input {source.name!r}", ("inputs", i, "kafka", "topic")
    for s, stage in enumerate(manifest.stages):
        for k, sink in enumerate(stage.sinks):
            if sink.settings.feeds is not None:
                path = ("stages", s, "sinks", k, sink.kind, "topic")
                yield sink.settings.feeds.topic, f"sink {sink.name!r}", path


def _dead_letter_problems(
    manifest: Manifest, reserved: str | None, owner: Mapping[str, str]
) -> Iterator[Located]:
    """Find dead-letter topics that a stage reads or a sink writes: dead letters would be read
    again, or lie among rows.
    """
    topic = manifest.dead_letter.topic
    if topic is not None:
        here = ("deadLetter", "topic")
        own = own_topic_problem(topic, reserved)
        if own is not None:
            yield here, own
        if topic in owner:
            message = f"topic {topic!r} is already that of {owner[topic]}"
            yield here, Problem(message=message, hint="give dead letters a topic of their own")
        return
    read = {name for stage in manifest.stages for name in stage.inputs}
    read_topics = {topic for name, topic in manifest.topics().items() if name in read}
    for source, _, path in _topics(manifest):
        if source not in read_topics:
            continue
        dead = manifest.dead_letter_topic(source)
        hint = "say another: deadLetter: {topic: …}"
        if len(dead) > TOPIC_CHARACTERS_MAX:
            message = f"its dead letters would go to a topic of {len(dead)} characters"
            hint = f"{TOPIC_CHARACTERS_MAX} are the most; {hint}"
            yield path, Problem(message=message, hint=hint)
        elif dead in owner:
            message = f"its dead letters would go to {dead!r}, which is that of {owner[dead]}"
            yield path, Problem(message=message, hint=hint)


def _source_problems(manifest: Manifest) -> list[Located]:
    found: list[Located] = []
    readable = list(manifest.topics())
    for s, stage in enumerate(manifest.stages):
        for i, name in enumerate(stage.inputs):
            if name not in readable:
                message = f"stage {stage.name!r} reads {name!r}: {_what_is(name, manifest)}"
                problem = Problem(message=message, hint=hint_of_names(name, readable, "known"))
                found.append((("stages", s, "inputs", i), problem))
        views = [*stage.inputs, *(step.name for step in stage.steps)]
        for k, sink in enumerate(stage.sinks):
            path = ("stages", s, "sinks", k)
            if sink.source is not None and sink.source not in views:
                hint = hint_of_names(sink.source, views, "known in this stage")
                problem = Problem(message=f"no view is called {sink.source!r}", hint=hint)
                found.append(((*path, "from"), problem))
            if sink.source is None and not stage.steps and len(stage.inputs) > 1:
                problem = Problem(
                    message=f"sink {sink.name!r} must say `from`: the stage has several inputs",
                    hint=f"for example from: {stage.inputs[0]}",
                )
                found.append((path, problem))
    return found


def _what_is(name: str, manifest: Manifest) -> str:
    """Return why no stage can read the name."""
    sink = manifest.sink(name)
    if sink is not None:
        return f"that is a sink of kind {sink.kind}, and stages read only from Kafka"
    return "no input, no Kafka sink"


def _cycle_problems(manifest: Manifest) -> list[Located]:
    """Find stages that read, directly or not, what they write."""
    writer = {sink.name: stage.name for stage in manifest.stages for sink in stage.sinks}
    before = {s.name: {writer[n] for n in s.inputs if n in writer} for s in manifest.stages}
    for _ in manifest.stages:
        for name, direct in before.items():
            before[name] = direct.union(*(before[other] for other in direct))
    return [
        (("stages", s), Problem(message=f"stage {stage.name!r} reads what it writes, in a cycle"))
        for s, stage in enumerate(manifest.stages)
        if stage.name in before[stage.name]
    ]
