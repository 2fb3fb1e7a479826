"""A pipeline whose input fetches files, and what became of them."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any, Literal, cast

import httpx2
from confluent_kafka.admin import NewTopic

from builders import applied
from integration.conftest import Surroundings
from integration.ingress.test_records import make_pipeline, stored, write_record
from integration.waiting import eventually
from waybill_shared.contract.dead_letters import split_headers
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.topics import create_missing

LOOPBACK = {"WAYBILL_CONNECTORS_ALLOW": "127.0.0.0/8"}


def rows(count: int, begin: int = 0) -> bytes:
    found = ({"order_id": n, "customer": f"c{n}"} for n in range(begin, begin + count))
    return "".join(json.dumps(each) + "\n" for each in found).encode()


class Fetched:
    """A pipeline with one connector."""

    def __init__(
        self,
        around: Surroundings,
        admin: KafkaAdmin,
        http: httpx2.Client,
        config: dict[str, str] | None = None,
    ) -> None:
        self._around = around
        self.http = http
        self.known = make_pipeline(around, admin, http, config=config)
        create_missing(admin, [NewTopic(f"{self.known.topic}.dlq", 1, 1)])
        self.name = self.known.record.name
        self._generation = self.known.record.generation

    def declare(
        self, *connectors: dict[str, Any], state: Literal["running", "stopped"] = "running"
    ) -> None:
        record = self.known.record
        self._generation += 1
        text = json.dumps(list(connectors))
        manifest = record.manifest.source.replace("    key:", f"    connectors: {text}\n    key:")
        assert manifest != record.manifest.source
        write_record(
            self._around,
            replace(record, manifest=applied(manifest), generation=self._generation, desired=state),
        )

    def told(self, name: str = "file") -> dict[str, Any]:
        """How far it is, and the token."""
        question = {"pipeline": self.name, "input": "orders", "connector": name}
        answer = self.http.post("/v1/tokens", json=question)
        return dict(answer.json()) if answer.status_code == httpx2.codes.OK else {}

    def reaches(self, state: str, name: str = "file", **more: object) -> dict[str, Any]:
        def reached() -> bool:
            now = self.told(name).get("connector", {})
            wanted = {"state": state, **more}
            return {key: now.get(key) for key in wanted} == wanted

        eventually(reached, saw=lambda: self.told(name))
        return self.told(name)

    def written(self) -> Counter[int]:
        found = stored(self._around, self.known.topic).values()
        return Counter(json.loads(value or b"{}")["order_id"] for _, value in found)

    def dead(self) -> list[tuple[bytes | None, dict[str, str]]]:
        messages = read_to_end(self._around.kafka, f"{self.known.topic}.dlq", [0])
        found = []
        for message in messages:
            letter = split_headers(cast(list[tuple[str, bytes | None]], message.headers() or []))
            assert letter is not None
            found.append((message.value(), dict(letter.facts)))
        return found


def once(count: int) -> Counter[int]:
    return Counter(range(count))
