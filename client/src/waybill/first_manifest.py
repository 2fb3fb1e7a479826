"""Writes the text of a first manifest: one that runs as it is, with comments on what to change.

Never talks to anything, and reads no file.
"""

import json
import re
import shlex
from dataclasses import dataclass
from typing import Final

from waybill.proposals import Proposal

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
NAME_IN_WORDS: Final = "lower-case letters, digits, - and _, a letter first, at most 63"
DEFAULT_NAME: Final = "orders"
OWN_PREFIX: Final = "waybill"  # topics that begin with it and a dot are Waybill's own
NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_-]+")
INPUT: Final = "records"
SCHEMA: Final = "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
SQL: Final = "SELECT *, amount * 0.2 AS tax FROM records"
SQL_OF_ALL: Final = "SELECT * FROM records"
RECORD: Final = '{"order_id": 1, "customer": "ada", "amount": 12.5}'


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstManifest:
    """The text of a first manifest, and the commands to run it.

    `file` is the name in the commands of its comments. Without a proposal the columns are an
    example, and so is the topic, which is created.
    """

    name: str
    file: str
    proposal: Proposal | None = None

    @property
    def next_steps(self) -> str:
        """The commands that come next, with what each does."""
        then = "send a record, and wait until it has arrived"
        if self.proposal is not None:
            then = "wait until all that the topic holds has arrived"
        return f"Next: check it, run it, {then}; look how far it is."

    @property
    def commands(self) -> tuple[str, ...]:
        file = shlex.quote(self.file)
        then = f"waybill send {self.name} {INPUT} '{RECORD}' --wait 60"
        if self.proposal is not None:
            then = f"waybill token wait $(waybill token for {self.name} {INPUT})"
        return (
            f"waybill check -f {file}",
            f"waybill apply -f {file} && waybill wait {self.name}",
            then,
            f"waybill describe {self.name}",
        )

    @property
    def text(self) -> str:
        return "\n".join([*self._head(), *self._input(), *self._stage(), ""])

    def _head(self) -> list[str]:
        return [
            f"# {self.name}: records come from a Kafka topic, go through SQL, and into a sink.",
            "# What you can write here is in docs/manifest.md.",
            f"# {self.next_steps}",
            *(f"#   {command}" for command in self.commands),
            "version: 1",
            f"name: {self.name}",
            "inputs:",
        ]

    def _input(self) -> list[str]:
        found = self.proposal
        schema = json.dumps(SCHEMA if found is None else found.schema, ensure_ascii=False)
        if found is None:
            topic = f"{{topic: {self._topic('in')}, partitions: 4}}   # made if it does not exist"
            head = ["    # An example: write your own columns, as name TYPE, name TYPE, …"]
            key = "key: order_id                 # records with the same order_id stay in order"
        else:
            topic = f"{{topic: {json.dumps(found.topic)}}}"
            head = [f"    # Proposed from {_count(found.records)} of the topic: look at each type."]
            head += [f"    # - {' '.join(note.split())}" for note in found.notes]
            key = (
                "# key: COLUMN                 # records over HTTP with the same one stay in order"
            )
        return [
            f"  - name: {INPUT}",
            f"    kafka: {topic}",
            *head,
            f"    schema: {schema}",
            f"    {key}",
            "    startingOffsets: earliest     # or latest: only what comes from now on",
        ]

    def _stage(self) -> list[str]:
        sql = SQL if self.proposal is None else SQL_OF_ALL
        table = self.name.replace("-", "_")
        return [
            "stages:",
            "  - name: transform",
            f"    inputs: [{INPUT}]",
            "    steps:                        # views, each over the input or steps before it",
            f"      - {{name: transformed, sql: {json.dumps(sql)}}}",
            "    sinks:                        # one or more; all get the rows of the last step",
            f"      - {{name: out, kafka: {{topic: {self._topic('out')}}}}}",
            "      # Rows of an Iceberg table, too:",
            f"      # - {{name: lake, iceberg: {{table: raw.{table}}}}}",
            "      # Of a Postgres table, after `waybill up --with postgres`:",
            "      # - name: people",
            f"      #   postgres: {{connection: warehouse, table: public.{table}}}",
        ]

    def _topic(self, end: str) -> str:
        """Return the name of a topic, other than the one of the input.

        A topic belongs to one input or one sink.
        """
        mark = "-" if self.name == OWN_PREFIX else "."
        topic = f"{self.name}{mark}{end}"
        used = self.proposal is not None and self.proposal.topic == topic
        return f"{topic}{mark}new" if used else topic


def name_for(folder: str) -> str:
    """Return a pipeline's name made of the folder's; a default if nothing is left of it."""
    name = NOT_IN_NAMES.sub("-", folder.lower()).strip("-_").lstrip("0123456789-_")[:63]
    return DEFAULT_NAME if name in {"", OWN_PREFIX} else name


def _count(records: int) -> str:
    return "1 record" if records == 1 else f"{records} records"
