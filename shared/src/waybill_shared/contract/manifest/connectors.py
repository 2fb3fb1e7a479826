"""Connectors of an input: files that are fetched into its topic, once. In a table as SQL they are
written as Feldera has them, in JSON."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from waybill_shared.contract.formats.csv_lines import CsvForm
from waybill_shared.contract.manifest.fields import Name, Strict
from waybill_shared.contract.manifest.foreign import tell_foreign
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.suggestions import hint_of_names

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"
URL_CHARACTERS_MAX: Final = 2_000
SCHEMES: Final = ("http", "https", "file", "s3")
BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
UNNAMED: Final = "unnamed-{number}"
CONNECTORS_MAX: Final = 16  # of one input
TRANSPORTS: Final = ("url_input", "file_input")
"""Names of Feldera's transports."""
FORMATS: Final = ("json", "csv")
"""Names of Feldera's formats that a table as SQL accepts."""
WITHOUT_EFFECT: Final = frozenset(
    {"labels", "max_batch_size", "max_queued_records", "max_queued_bytes"}
)
"""How fast it reads, and what it calls its connectors: nothing of it changes what arrives."""


def _is_fetched(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{url!r:.200} is no URL: {error}") from error
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ValueError(f"{url!r:.200} is not fetched: a URL begins with one of {known}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL has no user and no password: whoever may read manifests sees it")
    if "%00" in url:
        raise ValueError(f"{url!r:.200} has a zero byte")
    if parts.scheme == "file":
        if host or not parts.path.startswith("/"):
            raise ValueError(f"{url!r:.200} is no file: write file:///folder/name")
    elif parts.scheme == "s3":
        _is_object(url, parts.netloc, unquote(parts.path).removeprefix("/"))
    elif not host:
        raise ValueError(f"{url!r:.200} names no host")
    if parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r:.200} has a part behind #, or characters that a URL has not")
    return url


def _is_object(url: str, bucket: str, key: str) -> None:
    if not BUCKET.fullmatch(bucket) or not key:
        raise ValueError(f"{url!r:.200} is no object: write s3://BUCKET/KEY")
    if {".", ".."} & {*key.split("/")}:
        raise ValueError(f"{url!r:.200}: a part of a key may not be . or .., which servers change")
    if "?" in url:
        raise ValueError(f"{url!r:.200}: a key has no query; a ? in it is written %3F")


class FileCsv(CsvForm):
    """`header`: the first row names the columns; else they are those of the schema, in order."""

    header: Literal["present", "absent"] = "present"


class FileConnector(Strict):
    """A file that is fetched into the topic of its input, once."""

    name: str = Field(pattern=NAME_PATTERN)
    url: Annotated[str, Field(max_length=URL_CHARACTERS_MAX), AfterValidator(_is_fetched)]
    connection: Name | None = None
    format: Literal["json", "csv", "avro"] = "json"
    update_format: Literal["raw", "insert_delete", "debezium"] = "raw"
    csv: FileCsv | None = None
    every: Literal["once"] = "once"

    @model_validator(mode="after")
    def _has_its_connection(self) -> "FileConnector":
        signed = urlsplit(self.url).scheme == "s3"
        if signed and self.connection is None:
            raise ValueError("s3:// needs a connection, which says how the store is reached")
        if self.connection is not None and not signed:
            raise ValueError("connection goes with s3://; other URLs are fetched without one")
        return self


def with_names(connectors: object) -> object:
    """Give each connector without a name one that has its number."""
    if not isinstance(connectors, list):
        return connectors
    return [
        {"name": UNNAMED.format(number=number), **each}
        if isinstance(each, dict) and each.get("name") is None
        else each
        for number, each in enumerate(connectors)
    ]


def connectors_of(text: str) -> list[dict[str, JsonValue]]:
    """Parse the value of `WITH ('connectors' = '…')` into the form that a manifest has.

    Raise ValueError if it is wrong, and JSONDecodeError with the place if it is no JSON.
    """
    found = json.loads(text, object_pairs_hook=_once)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("connectors are a JSON array of objects")
    connectors = [_connector(each, number) for number, each in enumerate(found)]
    for each in connectors:
        try:
            FileConnector.model_validate(each)
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ")
            where = ".".join(map(str, first["loc"]))
            raise ValueError(f"connector {each['name']!r:.80}, {where}: {message}") from error
    return connectors


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name in found if sum(name == each for each, _ in pairs) > 1)
        raise ValueError(f"{twice!r:.80} stands twice in one object")
    return found


def _connector(given: Mapping[str, JsonValue], number: int) -> dict[str, JsonValue]:
    name = given.get("name")
    name = UNNAMED.format(number=number) if name is None else name
    here = f"connector {name!r:.80}"
    _only(given, ("name", "transport", "format"), here)
    transport = _object(given, "transport", here)
    kind = transport.get("name")
    if not isinstance(kind, str) or kind not in TRANSPORTS:
        raise ValueError(f"{here}: transport {_refusal(Spot.TRANSPORT, kind, TRANSPORTS)}")
    _only(transport, ("name", "config"), f"{here}, transport")
    config = _object(transport, "config", here)
    _only(config, ("path",), f"{here}, config of its transport")
    path = config.get("path")
    if not isinstance(path, str):
        raise ValueError(f"{here}: `path` of its transport is missing, or no text")
    url = path if kind == "url_input" else f"file://{quote(path)}"
    return {"name": name, "url": url, **_format(given, here)}


def _format(given: Mapping[str, JsonValue], here: str) -> dict[str, JsonValue]:
    form = _object(given, "format", here)
    _only(form, ("name", "config"), f"{here}, format")
    kind = form.get("name")
    config = _object(form, "config", here) if "config" in form else {}
    there = f"{here}, config of its format"
    match kind:
        case "json":
            _only(config, ("update_format", "array"), there)
            _flag(config, "array", there)  # an array is seen as one
            updates = config.get("update_format", "insert_delete")
            return {"format": "json", "updateFormat": updates}
        case "csv":
            _only(config, ("delimiter", "headers"), there)
            header = "present" if _flag(config, "headers", there) else "absent"
            delimiter = config.get("delimiter", ",")
            return {"format": "csv", "csv": {"delimiter": delimiter, "header": header}}
        case _:
            raise ValueError(f"{here}: format {_refusal(Spot.FORMAT, kind, FORMATS)}")


def _object(given: Mapping[str, JsonValue], key: str, here: str) -> Mapping[str, JsonValue]:
    value = given.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"{here}: `{key}` is {'missing' if value is None else 'no object'}")
    return value


def _flag(given: Mapping[str, JsonValue], key: str, here: str) -> bool:
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{here}: `{key}` is true or false, this is {value!r:.60}")
    return value


def _only(given: Iterable[str], known: tuple[str, ...], here: str) -> None:
    unknown = next((key for key in given if key not in (*known, *WITHOUT_EFFECT)), None)
    if unknown is not None:
        raise ValueError(f"{here}: {_refusal(Spot.CONNECTOR, unknown)}")


def _refusal(spot: Spot, word: object, known: tuple[str, ...] = ()) -> str:
    """Return what is said of a word that is none of those known."""
    said = tell_foreign(spot, str(word))
    if said is not None:
        return f"{said[0]} ({said[1]})"
    hint = hint_of_names(str(word), known, "known") or "leave it out"
    return f"{word!r:.60} is not supported ({hint})"
