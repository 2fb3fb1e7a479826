"""The contract on the wire: topics, schemas, examples and dataclasses say one thing."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import fastavro
import jsonschema_rs
import pytest
from fastavro.validation import validate
from ruamel.yaml import YAML

from waybill_shared.contract import codec
from waybill_shared.contract.events import Message
from waybill_shared.contract.status_events import DATA_OF
from waybill_shared.contract.topics import TopicSpec, topic_specs
from waybill_shared.contract.words import EventType
from waybill_shared.http.asyncapi import document, name_of, payload_of
from waybill_shared.kafka.topics import ACTIVE_BYTES_MAX
from waybill_shared.tools.asyncapi import render
from waybill_shared.tools.event_schema import event_schema

SCHEMAS = Path(__file__).parents[2] / "schemas"
SERVICES = {"ingress", "token_tracker", "stage_runner", "status"}
# Facts about a pipeline share one key and one partition count: both decide who owns the pipeline.
PIPELINE_KEY = "tenant/pipeline_uid"
FIELDS = {f.name for f in dataclasses.fields(TopicSpec)} - {"name"}
SPECS = {spec.name: spec for spec in topic_specs()}
TYPES = {topic: message_type for message_type, topic in codec.TOPIC_OF.items()}
AS_AVRO = [topic for topic, kind in TYPES.items() if kind not in codec.AS_JSON]
BYTES_OF = {"answers": ("body",)}
"""Fields that are text in an example, as JSON has no bytes."""
EXAMPLES = sorted((SCHEMAS / "examples").rglob("*.json"))


def named(example: Path) -> str:
    return str(example.relative_to(SCHEMAS / "examples"))


def load_example(path: Path) -> tuple[str, dict[str, object]]:
    """The topic and the message, as JSON."""
    return path.parts[-3], json.loads(path.read_text())


@pytest.mark.parametrize("path", sorted((SCHEMAS / "topics").iterdir()), ids=lambda p: p.stem)
def test_topic_file_has_exactly_the_fields_that_are_read(path: Path) -> None:
    assert path.suffix == ".yaml"
    assert set(YAML(typ="safe", pure=True).load(path.read_text())) == FIELDS


def test_package_has_every_schema() -> None:
    """By one link per file: what builds the wheel follows no link to a folder."""
    package = SCHEMAS.parent / "shared" / "src" / "waybill_shared" / "contract" / "schemas"
    for kind in ("avro", "events", "manifest", "topics"):
        for path in (SCHEMAS / kind).iterdir():
            link = package / kind / path.name
            assert link.resolve() == path, f"ln -s ../../../../../schemas/{kind}/{path.name} {link}"


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_topic_is_legal(spec: TopicSpec) -> None:
    assert spec.description.endswith(".")
    assert spec.writers
    assert spec.readers
    assert SERVICES.issuperset(spec.writers)
    assert SERVICES.issuperset(spec.readers)
    assert spec.cleanup in ("delete", "compact", "compact,delete")
    assert ("delete" in spec.cleanup) == ("retention.ms" in spec.config)
    assert all(float(value) > 0 for value in spec.config.values())
    assert spec.cleanup == "delete" or int(spec.config["segment.bytes"]) <= ACTIVE_BYTES_MAX
    assert spec.schema == codec.schema_path(spec.name)


def test_facts_about_a_pipeline_share_key_and_partition_count() -> None:
    own = {spec.name for spec in SPECS.values() if spec.key == PIPELINE_KEY}
    assert own >= {"commands", "commits", "lifecycle", "pipelines", "replies", "frontiers"}
    assert len({SPECS[name].partitions for name in own}) == 1


def test_each_schema_belongs_to_one_topic() -> None:
    folders = ("avro", "events")
    files = {f"{kind}/{path.name}" for kind in folders for path in (SCHEMAS / kind).iterdir()}
    referenced = [spec.schema for spec in SPECS.values()]
    assert sorted(referenced) == sorted(files)
    assert set(SPECS) == set(TYPES)


@pytest.mark.parametrize("topic", AS_AVRO)
def test_schema_parses_and_says_what_it_is(topic: str) -> None:
    schema = codec.load_schema(topic)
    fastavro.parse_schema(schema)
    assert schema["doc"]
    assert schema["namespace"] == "waybill"
    assert schema["name"] == TYPES[topic].__name__


@pytest.mark.parametrize("topic", SPECS)
def test_each_schema_has_an_example(topic: str) -> None:
    assert any(load_example(path)[0] == topic for path in EXAMPLES)


def test_examples_stand_in_folders_of_topics_and_versions() -> None:
    for path in EXAMPLES:
        assert path.parts[-3] in SPECS, f"{path} is an example of no topic"
        assert path.parts[-2] == "1", f"{path} is an example of no schema version"
    others = [p for p in (SCHEMAS / "examples").rglob("*") if p.is_file() and p not in EXAMPLES]
    assert others == []


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_example_is_valid_and_survives_the_wire(path: Path) -> None:
    topic, raw = load_example(path)
    if topic in AS_AVRO:
        as_bytes = {name: str(raw[name]).encode() for name in BYTES_OF.get(topic, ())}
        schema = fastavro.parse_schema(codec.load_schema(topic))
        assert validate({**raw, **as_bytes}, schema, strict=True)
    else:
        jsonschema_rs.validator_for(codec.load_schema(topic)).validate(raw)
    message: Message = codec.from_json(TYPES[topic], json.dumps(raw))
    assert json.loads(codec.to_json(message)) == raw, "the example has all fields, and no others"
    assert codec.decode(TYPES[topic], codec.encode(message)) == message


def test_the_schema_of_events_is_that_of_the_model() -> None:
    same = (SCHEMAS / "events" / "status.v1.schema.json").read_text() == event_schema()
    assert same, "run `.venv/bin/python -m waybill_shared.tools.event_schema`"


@pytest.mark.parametrize("topic", AS_AVRO)
def test_dataclass_has_the_fields_of_its_schema(topic: str) -> None:
    assert shape_of_type(TYPES[topic]) == SchemaShapes().of(codec.load_schema(topic))


def test_messages_are_those_with_a_topic() -> None:
    assert set(typing.get_args(Message)) == set(codec.TOPIC_OF)


WORDS = {str: "string", int: "number", bool: "boolean", bytes: "bytes", type(None): "null"}
AVRO_WORDS = {"int": "number", "long": "number"}
VECTOR_ROW = ("PartitionOffset", {"topic_id": "string", "partition": "number", "offset": "number"})
"""What a vector has in a message for each partition."""


def shape_of_type(kind: object) -> object:
    """Records as (name, fields), unions as lists, arrays and maps by what they hold."""
    arguments = typing.get_args(kind)
    match typing.get_origin(kind):
        case None if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            return kind.__name__, {name: shape_of_type(hint) for name, hint in hints.items()}
        case None if isinstance(kind, type):
            return "string" if issubclass(kind, StrEnum) else WORDS[kind]
        case types.UnionType | typing.Union:
            null_first = sorted(arguments, key=lambda branch: branch is not type(None))
            return [shape_of_type(branch) for branch in null_first]
        case typing.Literal:
            return "string"
        case container if container is tuple:
            return {"items": shape_of_type(arguments[0])}
        case container if container is dict:
            return {"values": shape_of_type(arguments[1])}
        case container if container is Mapping:
            return {"items": VECTOR_ROW}
    raise AssertionError(f"not known to this test: {kind}")


class SchemaShapes:
    """Avro describes each record once and names it afterwards; this puts the record back."""

    def __init__(self) -> None:
        self._records: dict[str, object] = {}

    def of(self, schema: object) -> object:
        match schema:
            case str():
                return self._records.get(schema, AVRO_WORDS.get(schema, schema))
            case list():
                return [self.of(branch) for branch in schema]
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                shape = (name, {field["name"]: self.of(field["type"]) for field in fields})
                self._records[name] = shape
                return shape
            case {"type": "enum"}:
                return "string"
            case {"type": "array", "items": items}:
                return {"items": self.of(items)}
            case {"type": "map", "values": values}:
                return {"values": self.of(values)}
        raise AssertionError(f"not known to this test: {schema}")


def test_the_page_of_events_shows_them_as_they_are() -> None:
    same = (SCHEMAS.parent / "docs" / "asyncapi.yaml").read_text(encoding="utf-8") == render()
    assert same, "run `.venv/bin/python -m waybill_shared.tools.asyncapi > docs/asyncapi.yaml`"


@pytest.mark.parametrize("kind", EventType)
def test_each_type_of_event_has_an_example_that_its_schema_takes(kind: EventType) -> None:
    (example,) = document()["components"]["messages"][name_of(kind)]["examples"]
    validator = jsonschema_rs.validator_for(payload_of(kind))
    validator.validate(example["payload"])
    damaged = {**example["payload"], "data": {}}
    assert not validator.is_valid(damaged), "an event without its data"


def test_references_in_the_page_of_events_lead_somewhere() -> None:
    page = document()
    assert "$defs" not in render()
    for name, message in page["channels"]["status"]["messages"].items():
        assert message["$ref"].rpartition("/")[2] == name
    assert page["channels"]["status"]["messages"].keys() == page["components"]["messages"].keys()
    assert {*DATA_OF} == {*EventType}
