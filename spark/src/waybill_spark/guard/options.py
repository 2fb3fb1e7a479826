"""The options that a query may give to functions of JSON and CSV: this list, and no others. Some of
the others set how much memory Spark takes for a text. Pure."""

from collections.abc import Iterator
from typing import Final

from waybill_spark.guard.trees import Node

FUNCTIONS: Final = frozenset(
    {"from_csv", "from_json", "schema_of_csv", "schema_of_json", "to_csv", "to_json"}
)
OPTIONS: Final = (
    "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers",
    "allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars",
    "allowUnquotedFieldNames", "charToEscapeQuoteEscaping", "columnNameOfCorruptRecord", "comment",
    "dateFormat", "delimiter", "dropFieldIfAllNull", "emptyValue", "enableDateTimeParsingFallback",
    "escape", "escapeQuotes", "ignoreLeadingWhiteSpace", "ignoreNullFields",
    "ignoreTrailingWhiteSpace", "inferTimestamp", "lineSep", "locale", "mode", "nanValue",
    "negativeInf", "nullValue", "positiveInf", "preferDate", "prefersDecimal", "pretty",
    "primitivesAsString", "quote", "quoteAll", "sep", "timeZone", "timestampFormat",
    "timestampNTZFormat", "unescapedQuoteHandling", "writeNonAsciiCharacterAsCodePoint",
)  # fmt: skip
_KNOWN: Final = frozenset(name.lower() for name in OPTIONS)
"""Spark ignores case here."""


def unknown_options(function: str, call: Node) -> Iterator[str]:
    """Yield what is no option of the list; empty for a name that is not written as a text.

    Spark accepts options only as `map(…)`, after the first argument.
    """
    if function not in FUNCTIONS:
        return
    for argument in call.children[1:]:
        if (argument.words("nameParts") or "").lower() != "map":
            continue
        for name in argument.children[::2]:
            text = name.fields.get("value") if name.name == "Literal" else ""
            if str(text).lower() not in _KNOWN:
                yield str(text)
