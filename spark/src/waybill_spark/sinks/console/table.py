"""Draws rows as a table of text."""

from typing import Final

import pyarrow as pa

WIDTH_MAX: Final = 40  # of a column; longer values end with …


def draw(table: pa.Table, rows_max: int) -> str:
    """Draw the first rows, and how many more there are."""
    head = table.slice(0, rows_max)
    columns = [
        [_cell(name), *(_cell(value) for value in head.column(number).to_pylist())]
        for number, name in enumerate(table.schema.names)
    ]
    widths = [max(map(len, column)) for column in columns]
    title, *lines = (
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    )
    ruler = "-+-".join("-" * width for width in widths)
    more = table.num_rows - head.num_rows
    return "\n".join([title, ruler, *lines, *([f"and {more} more"] if more else [])])


def _cell(value: object) -> str:
    """Return a value on one line, because a text must not look like another line of the log."""
    if value is None:
        return "NULL"
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))
    return plain if len(plain) <= WIDTH_MAX else f"{plain[: WIDTH_MAX - 1]}…"
