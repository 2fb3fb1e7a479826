"""The tables of docs/existing-clusters.md: `python -m waybill_shared.tools.grants_page`."""

from collections.abc import Iterator, Sequence
from typing import Final

from waybill_shared.contract.grants import KAFKA_GRANTS, PREFIX, REDIS_GRANTS
from waybill_shared.contract.topics import topic_specs

TOPICS: Final = ("topic", "partitions", "cleanup.policy", "more configuration")
KAFKA: Final = ("service", "may", "on", "for", "needed")
REDIS: Final = ("service", "keys", "channel", "commands")


def tables() -> tuple[str, str, str]:
    """Return the tables of topics, of rights in Kafka, and of rights in Redis."""
    return _table(TOPICS, _topics()), _table(KAFKA, _kafka()), _table(REDIS, _redis())


def _topics() -> Iterator[Sequence[str]]:
    for spec in topic_specs():
        more = ", ".join(f"`{key}={value}`" for key, value in spec.config.items())
        yield f"`{PREFIX}.{spec.name}`", str(spec.partitions), f"`{spec.cleanup}`", more


def _kafka() -> Iterator[Sequence[str]]:
    for service, grants in KAFKA_GRANTS.items():
        for grant in grants:
            place = f"{grant.resource} `{grant.name}`"
            place += " and all names that begin with it" if grant.prefixed else ""
            yield f"`{service}`", ", ".join(grant.operations), place, grant.why, grant.need


def _redis() -> Iterator[Sequence[str]]:
    for service, grant in REDIS_GRANTS.items():
        commands = " ".join(f"`{command}`" for command in grant.commands).replace("|", "\\|")
        yield f"`{service}`", f"`{grant.keys}`", f"`{grant.channel}`", commands


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print("\n".join(tables()), end="")
