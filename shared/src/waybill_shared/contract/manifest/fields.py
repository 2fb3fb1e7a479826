"""What the models of a manifest have in common: how strict they are, and kinds of text."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

TOPIC_CHARACTERS_MAX = 249  # Kafka's
NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,62}$"
TOPIC_PATTERN = rf"^[a-zA-Z0-9_-][a-zA-Z0-9._-]{{0,{TOPIC_CHARACTERS_MAX - 1}}}$"
TABLE_PATTERN = r"^[a-z][a-z0-9_]{0,127}\.[a-z][a-z0-9_]{0,127}$"  # they become folders
DATABASE_TABLE_PATTERN = r"^[^.\x00]{1,63}\.[^\x00]{1,63}$"
DATABASE_COLUMN_PATTERN = r"^[^\x00]{1,63}$"
COLUMN_PATTERN = r"^[^\x00]{1,255}$"
IN_WORDS = {
    NAME_PATTERN: "lower-case letters, digits, - and _, a letter first, at most 63",
    TOPIC_PATTERN: "letters, digits, ., - and _, at most 249",
    TABLE_PATTERN: "namespace.table, each of at most 128 lower-case letters, digits and _, a letter"
    " first",
    DATABASE_TABLE_PATTERN: "schema.table, each of at most 63 characters; names are used as they"
    " are written, with capitals and spaces",
    DATABASE_COLUMN_PATTERN: "the name of a column, at most 63 characters",
    COLUMN_PATTERN: "the name of a column, at most 255 characters",
}

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Topic = Annotated[str, Field(pattern=TOPIC_PATTERN)]
TableName = Annotated[str, Field(pattern=TABLE_PATTERN)]
DATABASE_NAME_BYTES_MAX = 63  # longer names are cut in silence


def _fits(name: str) -> str:
    schema, _, table = name.partition(".")
    if max(len(schema.encode()), len(table.encode())) > DATABASE_NAME_BYTES_MAX:
        raise ValueError(f"{name} is too long: Postgres takes 63 bytes of UTF-8 for a name")
    return name


DatabaseTable = Annotated[str, Field(pattern=DATABASE_TABLE_PATTERN), AfterValidator(_fits)]
ColumnName = Annotated[str, Field(pattern=COLUMN_PATTERN)]
DatabaseColumn = Annotated[str, Field(pattern=DATABASE_COLUMN_PATTERN)]
Partitions = Annotated[int, Field(ge=1, le=1000)]


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True
    )
