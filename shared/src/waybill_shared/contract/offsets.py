"""The form of vectors in messages and slots. In memory, a vector is a mapping and nothing else.

A message has a row for each partition, in order. A slot in Redis has them by topic, which is a
fifth of the size: a slot may contain thousands.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from waybill_shared.contract.vectors import TopicPartition, Vector

_ENDS: Final = core_schema.dict_schema(core_schema.int_schema(), core_schema.int_schema())


class _Rows:
    """The form in messages: {topic_id, partition, offset} for each partition."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _from_rows, serialization=core_schema.plain_serializer_function_ser_schema(_to_rows)
        )


class _ByTopic:
    """The form in slots: by topic id, and then by partition."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            _from_topics,
            core_schema.dict_schema(core_schema.str_schema(), _ENDS),
            serialization=core_schema.plain_serializer_function_ser_schema(_to_topics),
        )


Offsets = Annotated[Vector, _Rows]
"""A vector in a message."""
StoredOffsets = Annotated[Vector, _ByTopic]
"""A vector in a slot."""


def _from_rows(rows: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    try:
        return {(row["topic_id"], row["partition"]): row["offset"] for row in rows}
    except (KeyError, TypeError) as error:
        raise ValueError(f"no offsets of partitions: {rows!r:.100}") from error


def _to_rows(vector: Vector) -> list[dict[str, Any]]:
    return [
        {"topic_id": topic_id, "partition": partition, "offset": offset}
        for (topic_id, partition), offset in sorted(vector.items())
    ]


def _from_topics(topics: Mapping[str, Mapping[int, int]]) -> dict[TopicPartition, int]:
    return {
        (topic_id, partition): offset
        for topic_id, ends in topics.items()
        for partition, offset in ends.items()
    }


def _to_topics(vector: Vector) -> dict[str, dict[int, int]]:
    topics: dict[str, dict[int, int]] = {}
    for (topic_id, partition), offset in vector.items():
        topics.setdefault(topic_id, {})[partition] = offset
    return topics
