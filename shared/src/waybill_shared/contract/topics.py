"""The `waybill.*` topics as data, from `schemas/topics/*.yaml`."""

from dataclasses import dataclass
from functools import cache

from ruamel.yaml import YAML

from waybill_shared.contract.schemas import SCHEMAS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    name: str
    description: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    schema: str
    key: str
    partitions: int
    cleanup: str
    config: dict[str, str]

    def kafka_config(self) -> dict[str, str]:
        return {"cleanup.policy": self.cleanup, **self.config}


@cache
def topic_specs() -> tuple[TopicSpec, ...]:
    """Return every topic of ours, by its name without prefix."""
    folder = SCHEMAS / "topics"
    named = sorted((entry.name, entry.read_text()) for entry in folder.iterdir())
    return tuple(
        _spec(name.removesuffix(".yaml"), YAML(typ="safe", pure=True).load(text))
        for name, text in named
    )


def _spec(name: str, raw: dict[str, object]) -> TopicSpec:
    def words(key: str) -> tuple[str, ...]:
        value = raw[key]
        assert isinstance(value, list)
        return tuple(str(item) for item in value)

    config = raw["config"]
    assert isinstance(config, dict)
    return TopicSpec(
        name=name,
        description=str(raw["description"]),
        writers=words("writers"),
        readers=words("readers"),
        schema=str(raw["schema"]),
        key=str(raw["key"]),
        partitions=int(str(raw["partitions"])),
        cleanup=str(raw["cleanup"]),
        config={str(key): str(value) for key, value in config.items()},
    )
