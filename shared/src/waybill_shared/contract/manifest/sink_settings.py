"""What the settings of all kinds of sinks have in common, and those of kinds that write by keys."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from pydantic import Field, model_validator

from waybill_shared.contract.manifest.fields import Name, Strict
from waybill_shared.contract.manifest.maintenance import TableTask
from waybill_shared.contract.words import Guarantee


class FedTopic(Protocol):
    """A topic that a sink writes, and stages may read."""

    @property
    def topic(self) -> str: ...

    @property
    def partitions(self) -> int: ...


class SinkSettings(Strict):
    """The settings of a sink of one kind in a manifest."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The name that people use: the topic or the table."""

    @property
    def feeds(self) -> FedTopic | None:
        """The topic in which stages may read what was written."""
        return None

    @property
    def columns_named(self) -> Mapping[str, str]:
        """Columns that the view must have, by the key that names each."""
        return {}

    @property
    def awaited(self) -> bool:
        """True if tokens wait for it even when its stage has other sinks."""
        return True

    @property
    def repeatable(self) -> bool:
        """True if two sinks of one pipeline may have the same target."""
        return True

    @property
    def admits_others(self) -> bool:
        """True if other pipelines may write to its target."""
        return False

    @property
    def merge_keys(self) -> frozenset[str]:
        """Columns by which a row replaces an earlier one; empty: rows are only added."""
        return frozenset()

    @property
    def may_age(self) -> bool:
        """True if an older row may replace a newer one, as nothing says which is newer."""
        return False

    @property
    def replaces(self) -> str:
        """The rows that each batch erases of those before it; empty: nothing."""
        return ""

    @property
    def promised(self) -> Guarantee:
        """The guarantee how often a row is there when its token is complete."""
        return Guarantee.ONCE

    @property
    def maintenance_tasks(self) -> Mapping[str, TableTask] | None:
        """The tasks that keep its table in order, by the keys of the manifest; or None."""
        return None

    @property
    def gathers(self) -> bool:
        """True if all rows of a batch are collected in one process, however many they are."""
        return True

    @property
    def cautions(self) -> tuple[str, ...]:
        """The things that a person should know before it is applied."""
        if not self.replaces:
            return ()
        erased = "and so erases what the batches before it wrote"
        return (f"every batch replaces {self.replaces}, {erased}",)


class TableSettings(SinkSettings):
    """The settings of a table in which a row may take the place of the one with its keys."""

    connection: Name
    table: str
    mode: str
    keys: tuple[str, ...] = Field(default=(), max_length=32)
    order_by: str | None = None
    delete_where: str | None = None
    create: bool = True
    shared: bool = False

    @model_validator(mode="after")
    def _keys_are_for_upsert(self) -> "TableSettings":
        upsert = self.mode == "upsert"
        given = {"keys": self.keys, "orderBy": self.order_by, "deleteWhere": self.delete_where}
        for name, value in given.items():
            if value and not upsert:
                needs = "need" if name == "keys" else "needs"
                raise ValueError(f"{name} {needs} mode: upsert; {self.mode} looks at no keys")
        if not self.keys and upsert:
            raise ValueError("mode: upsert needs keys, for example keys: [order_id]")
        if len({*self.keys}) < len(self.keys):
            raise ValueError("keys has a column twice")
        if self.delete_where is not None and self.delete_where in (*self.keys, self.order_by):
            raise ValueError("deleteWhere is a boolean column of its own, no key and no orderBy")
        return self

    @property
    def target(self) -> str:
        return f"{self.connection}.{self.table}"

    @property
    def admits_others(self) -> bool:
        return self.shared

    @property
    def merge_keys(self) -> frozenset[str]:
        return frozenset(self.keys)

    @property
    def may_age(self) -> bool:
        return bool(self.keys) and self.order_by is None

    @property
    def columns_named(self) -> Mapping[str, str]:
        named = {f"keys.{number}": key for number, key in enumerate(self.keys)}
        others = {"orderBy": self.order_by, "deleteWhere": self.delete_where}
        return named | {name: column for name, column in others.items() if column is not None}
