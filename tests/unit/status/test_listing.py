"""The list of pipelines over HTTP: by phase, by tag, and page by page."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from builders import MANIFEST, applied
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import life, reading, record, slot
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.lifecycle import Phase
from waybill_status.core.outcomes.views import PipelineKey, SlotReading

PHASES = {"a": "Running", "b": "Failed", "c": "Running", "d": "Recovering", "e": "Failed"}
TAGS = {"a": "[shop]", "b": "[shop, eu]", "c": "[eu]", "e": "[shop, eu]"}
REFUSED = replace(applied(MANIFEST), native="{}")  # by this version


@pytest.fixture
def five(owners: FakeOwners, store: FakeStore) -> None:
    owners.directory.accept(replace(record(), desired="deleted"))
    for name, phase in PHASES.items():
        found = replace(record(name, uid=name), run=life().run)
        tagged = applied(f"{MANIFEST}tags: {TAGS[name]}\n") if name in TAGS else REFUSED
        owners.directory.accept(replace(found, manifest=tagged))
        content = replace(slot(lifecycle=life(phase)), pipeline_uid=name)
        store.readings[DEFAULT_TENANT, name] = reading(content)


def names(client: TestClient, asked: str = "") -> list[str]:
    answer = client.get(f"/v1/pipelines{asked}")
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["items"]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("", "abcde"),
        ("?phase=Failed", "be"),
        ("?phase=Failed&phase=Recovering", "bde"),
        ("?phase=Paused", ""),
        ("?tag=shop", "abe"),
        ("?tag=shop&tag=eu", "be"),
        ("?tag=none", ""),
        ("?tag=eu&phase=Running", "c"),
        ("?after=b", "cde"),
        ("?after=bb&phase=Failed", "e"),
        ("?limit=2", "ab"),
        ("?limit=1&phase=Failed", "b"),
    ],
)
def test_the_list_has_the_pipelines_that_are_asked_for(
    five: None, client: TestClient, asked: str, found: str
) -> None:
    assert names(client, asked) == [*found]


@pytest.mark.parametrize("filters", ["", "&phase=Running&phase=Failed", "&tag=eu"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_have_each_pipeline_once(
    five: None, client: TestClient, limit: int, filters: str
) -> None:
    seen: list[str] = []
    asked = f"limit={limit}{filters}"
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"/v1/pipelines?{asked}&cursor={cursor}").json()
        assert 0 < len(page["items"]) <= limit
        seen += [each["name"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert seen == names(client, f"?limit=9{filters}")


def test_a_page_without_a_phase_reads_only_its_own_slots(
    five: None, client: TestClient, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    read = store.read

    async def note(pipelines: Iterable[PipelineKey]) -> Mapping[PipelineKey, SlotReading]:
        asked.append({uid for _, uid in pipelines})
        return await read(pipelines)

    monkeypatch.setattr(store, "read", note)
    assert names(client, "?after=a&limit=2") == ["b", "c"]
    assert asked == [{"b", "c", "d"}]


def test_a_phase_that_does_not_exist_is_refused_with_all_that_do(client: TestClient) -> None:
    answer = client.get("/v1/pipelines?phase=failed")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")
    assert all(phase in answer.text for phase in Phase)


@pytest.mark.parametrize("asked", ["after=a&cursor=b", "limit=0", "limit=1001"])
def test_what_is_no_page_is_refused(client: TestClient, asked: str) -> None:
    assert client.get(f"/v1/pipelines?{asked}").status_code == 422
