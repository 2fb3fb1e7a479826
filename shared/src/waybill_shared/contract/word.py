"""The base of the words of answers, events, metrics and errors: each has its meaning with it."""

import re
from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word of answers. As text it is the word itself, in JSON and Avro too."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Create a word with its meaning. Enum finds a word by its text alone; a test ensures that
        each has a meaning."""
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        return word

    @property
    def plain(self) -> str:
        """The meaning for people who see no JSON: without what it says of members of the answer."""
        return re.split("[:;] ", self.meaning, maxsplit=1)[0]

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: object) -> dict[str, str]:
        """Describe a word as any text in OpenAPI, because a newer version may have more words."""
        return {"type": "string", "description": meanings(cls)}


def meanings(words: type[Word]) -> str:
    """List all words of a kind, in Markdown."""
    return "\n".join(f"- `{word}`: {word.meaning}" for word in words)
