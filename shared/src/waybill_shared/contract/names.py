"""Which input a name of a table means."""

from collections.abc import Iterable


def name_meant(table: str, known: Iterable[str]) -> str:
    """Return the name that `table` means: the exact one, else the only one that differs in case
    alone. A name in quotes is exact.
    """
    if len(table) > 1 and table.startswith('"') and table.endswith('"'):
        return table[1:-1]
    names = list(known)
    alike = [name for name in names if name.casefold() == table.casefold()]
    return alike[0] if table not in names and len(alike) == 1 else table
