"""What is wrong with the form of a manifest, in words: keys, kinds of values, and their limits."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.manifest.document import Document, Path
from waybill_shared.contract.manifest.fields import IN_WORDS
from waybill_shared.contract.manifest.foreign import find_foreign, tell_foreign
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.manifest.formats import FORMATS
from waybill_shared.contract.manifest.iceberg import (
    PartitionField,
    SortField,
    partition_entry,
    sort_entry,
)
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.manifest.model import SINK_KEYS, Manifest, Sink, Stage, Step
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.contract.manifest.triggers import TriggerSettings
from waybill_shared.contract.suggestions import hint_of_names, nearest

Item = Any
"""One error as pydantic reports it."""
Told = tuple[str, str]
"""A message and a hint."""
EXAMPLES: Final = {
    "version": "1",
    "trigger": "{processingTime: 5 seconds}",
    "schedule": "{cron: 0 3 * * *}",
    "parallelism": "4",
    "kafka": "{topic: orders}",
    "iceberg": "{table: raw.orders}",
    **{key: value for row in FORMATS.values() for key, value in row.examples.items()},
    "nullText": '"NULL"',
    "expectations": "[{name: positive, expect: amount > 0}]",
    "expect": "amount > 0",
    "deadLetter": "{budget: 100 per 1 minute}",
    "budget": "100 per 1 minute",
}
"""What is written where a key has a value of another kind."""
KEYS: Final[dict[type[BaseModel], Spot]] = {
    Manifest: Spot.TOP, Input: Spot.INPUT, Stage: Spot.STAGE, Step: Spot.STEP, Sink: Spot.SINK,
    TriggerSettings: Spot.TRIGGER, FileConnector: Spot.CONNECTOR,
    **{kind.model: Spot.SETTINGS for kind in KINDS.values()},
}  # fmt: skip
"""Where words of other systems may be keys."""
VALUES: Final[dict[tuple[type[BaseModel], str], Spot]] = {
    (Manifest, "state"): Spot.STATE,
    (Input, "format"): Spot.FORMAT,
    (FileConnector, "format"): Spot.FORMAT,
    (KINDS["kafka"].model, "format"): Spot.SINK_FORMAT,
}
"""And where they may be values."""


ENTRIES: Final[dict[type[BaseModel], Callable[[str], str]]] = {
    PartitionField: partition_entry,
    SortField: sort_entry,
}
"""How to write an entry of a list that somebody wrote as a text."""


def find_form_problems(document: Document, error: ValidationError) -> list[Problem]:
    items = [(_as_written(document, tuple(i["loc"])), i) for i in error.errors()]
    for path, item in items:
        if (whole := _whole_text(path, item)) is not None:
            return [document.place(whole, path)]
    paths = [path for path, _ in items]
    foreign = [(path[:-1], said[1]) for path, i in items if (said := _foreign(path, i)) is not None]
    misspelt = {(*path[:-1], meant) for path, i in items if (meant := _meant(path, i)) is not None}
    return [
        document.place(Problem(message=message, hint=hint), path)
        for path, item in items
        if not _is_consequence(path, item, paths, misspelt)
        and not _is_in_a_way(path, item, foreign)
        for message, hint in [_tell(path, item)]
    ]


def _is_consequence(path: Path, item: Item, paths: Iterable[Path], misspelt: set[Path]) -> bool:
    """Return True if the error follows from another one that is reported: a list without its wrong
    items, or a misspelt key.
    """
    if item["type"] == "too_short":
        return any(other[: len(path)] == path for other in paths if len(other) > len(path))
    return item["type"] == "missing" and path in misspelt


def _is_in_a_way(path: Path, item: Item, foreign: Iterable[tuple[Path, str]]) -> bool:
    """Return whether a key is missing that the hint of a foreign one in its mapping names."""
    ways = (way for at, way in foreign if at == path[:-1])
    return item["type"] == "missing" and any(f"{path[-1]}:" in way for way in ways)


def _as_written(document: Document, path: Path) -> Path:
    """Return the path as the text has it, where the settings of a sink are under the name of their
    kind.
    """
    if path[2:3] != ("sinks",) or path[4:5] != ("settings",):
        return path
    stages, s, sinks, k, settings, *rest = path
    written = document.tree[stages][s][sinks][k]
    kind = next((key for key in written if key in KINDS), settings)
    return path if settings in written else (stages, s, sinks, k, kind, *rest)


def _whole_text(path: Path, item: Item) -> Problem | None:
    """Return what the document is if a key shows that it is another system's."""
    if item["type"] != "extra_forbidden" or len(path) > 1:
        return None
    row = find_foreign(Spot.TOP, str(path[0]))
    if row is None or not row.whole:
        return None
    message, hint = row.tell(Spot.TOP, str(path[0]))
    return Problem(message=message, hint=hint)


def _foreign(path: Path, item: Item) -> Told | None:
    """Return what to say of a word that other systems have there."""
    model, key = _model_at(path[:-1]), str(path[-1])
    match item["type"]:
        case "extra_forbidden":
            spot, word = KEYS.get(model), key
        case "literal_error":
            spot, word = VALUES.get((model, key)), str(item["input"])
        case "model_type" if _model_at(path) is TriggerSettings:
            spot, word = Spot.TRIGGER, str(item["input"])
        case _:
            return None
    return None if spot is None else tell_foreign(spot, word)


def _meant(path: Path, item: Item) -> str | None:
    """Return the key that a misspelt one resembles most; None if it is not misspelt."""
    if item["type"] != "extra_forbidden" or _foreign(path, item) is not None:
        return None
    return nearest(str(path[-1]), _keys_of(_model_at(path[:-1])))


def _tell(path: Path, item: Item) -> Told:
    if (foreign := _foreign(path, item)) is not None:
        return foreign
    tell = WORDS.get(item["type"])
    return tell(path, item) if tell else (item["msg"].removeprefix("Value error, "), "")


def _unknown_key(path: Path, item: Item) -> Told:
    message = f"unknown key {path[-1]!r}"
    keys = _keys_of(_model_at(path[:-1]))
    close = nearest(str(path[-1]).replace(" ", ""), keys)
    if close is None and " " in str(path[-1]):
        return message, "a comma ends a text that stands in { }: put the text in quotes"
    return message, f"did you mean {close!r}?" if close else f"known here: {', '.join(keys)}"


def _no_key(path: Path, item: Item) -> Told:
    return "a key is a text", f"known here: {', '.join(_keys_of(_model_at(path[:-1])))}"


def _missing(path: Path, item: Item) -> Told:
    return f"{path[-1]!r} is missing", _example(path)


def _pattern(path: Path, item: Item) -> Told:
    return f"{_kind(item)} cannot stand here", IN_WORDS.get(item["ctx"]["pattern"], "")


def _choice(path: Path, item: Item) -> Told:
    known = re.findall(r"[\w-]+", item["ctx"]["expected"].replace(" or ", " "))
    message = f"{_kind(item)} cannot stand here"
    if len(known) == 1:
        return message, f"write {known[0]}"
    return message, hint_of_names(str(item["input"]).lower(), known, "known here")


def _list(path: Path, item: Item) -> Told:
    message = f"{_name(path)} takes a list, this is {_kind(item)}"
    names = path[0] == "stages" and path[-1] == "inputs" and isinstance(item["input"], str)
    return message, f"write [{item['input']}]" if names else "begin each item with `- `"


def _mapping(path: Path, item: Item) -> Told:
    message = f"keys with values must stand here, this is {_kind(item)}"
    write = ENTRIES.get(_model_at(path))
    entry = write(item["input"]) if write and isinstance(item["input"], str) else ""
    known = f"known here: {', '.join(_keys_of(_model_at(path)))}"
    return message, f"write {entry}; {known}" if entry else _example(path) or known


def _text(path: Path, item: Item) -> Told:
    if item["input"] is None:
        return f"{_name(path)} has no value", _example(path)
    message = f"{_name(path)} takes a text, this is {_kind(item)}"
    structured = isinstance(item["input"], dict | list)
    return message, _example(path) if structured else "put it in quotes"


def _whole(path: Path, item: Item) -> Told:
    return f"{_name(path)} takes a whole number, this is {_kind(item)}", ""


def _too_small(path: Path, item: Item) -> Told:
    return f"{_name(path)} must be at least {item['ctx']['ge']}, this is {item['input']}", ""


def _too_large(path: Path, item: Item) -> Told:
    return f"{_name(path)} must be at most {item['ctx']['le']}, this is {item['input']}", ""


def _empty(path: Path, item: Item) -> Told:
    return f"{_name(path)} is empty", _example(path)


def _too_long(path: Path, item: Item) -> Told:
    return f"{_name(path)} is too long: at most {item['ctx']['max_length']} are allowed", ""


def _property(path: Path, item: Item) -> Told:
    return item["ctx"]["message"], item["ctx"]["hint"]


def _name(path: Path) -> str:
    """Return the name of a key, or of an item in the list of a key."""
    return repr(path[-1]) if isinstance(path[-1], str) else f"an item of {path[-2]!r}"


WORDS: Final[dict[str, Callable[[Path, Item], Told]]] = {
    "extra_forbidden": _unknown_key,
    "invalid_key": _no_key,
    "missing": _missing,
    "string_pattern_mismatch": _pattern,
    "literal_error": _choice,
    "tuple_type": _list,
    "model_type": _mapping,
    "dict_type": _mapping,
    "string_type": _text,
    "int_type": _whole,
    "int_parsing": _whole,
    "int_from_float": _whole,
    "greater_than_equal": _too_small,
    "less_than_equal": _too_large,
    "too_short": _empty,
    "string_too_short": _empty,
    "too_long": _too_long,
    "string_too_long": _too_long,
    "property": _property,
}


def _example(path: Path) -> str:
    written = EXAMPLES.get(str(path[-1]))
    return f"for example {path[-1]}: {written}" if written else ""


def _kind(item: Item) -> str:
    """Describe the value that was written; a long one is shortened."""
    match item["input"]:
        case None:
            return "nothing"
        case dict():
            return "a mapping of keys to values"
        case list() | tuple():
            return "a list"
        case value:
            return f"{value!r:.80}"


def _model_at(path: Path) -> type[BaseModel]:
    """Return the model of the deepest mapping on the way to a part of a manifest."""
    found: type[BaseModel] = Manifest
    for part in path:
        if found is Sink and part in KINDS:
            found = KINDS[str(part)].model
        elif isinstance(part, str):
            found = _model_of(found, part) or found
    return found


def _model_of(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the model of what is below a key, or of the items of its list."""
    fields = model.model_fields.items()
    kinds = [field.annotation for name, field in fields if (field.alias or name) == key]
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
        kinds.extend(get_args(kind))
    return None


def _keys_of(model: type[BaseModel]) -> list[str]:
    if model is Sink:
        return [*SINK_KEYS, *KINDS]
    fields = sorted(model.model_fields.items(), key=lambda item: not item[1].is_required())
    return [field.alias or name for name, field in fields]
