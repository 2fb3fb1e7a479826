"""Topics keep what a token needs as long as a token lives, and the pages of schemas say so."""

import re
from pathlib import Path

import pytest

from waybill_shared.contract.token_life import DAY_MS, TOKEN_LIFE_MS, WATCH_LIFE_MS
from waybill_shared.contract.topics import topic_specs

SCHEMAS = Path(__file__).parents[2] / "schemas"
RETENTION = {spec.name: int(spec.config.get("retention.ms", 0)) for spec in topic_specs()}
AS_LONG_AS_TOKENS = ("commits", "lifecycle", "replays")
AS_LONG_AS_WATCHES = ("deliveries", "watches")
KEPT = re.compile(r"`waybill\.(\w+)` \|[^|]*kept (\d+) days")


@pytest.mark.parametrize("topic", AS_LONG_AS_TOKENS)
def test_what_answers_a_token_is_kept_as_long_as_it_lives(topic: str) -> None:
    assert RETENTION[topic] == TOKEN_LIFE_MS


@pytest.mark.parametrize("topic", AS_LONG_AS_WATCHES)
def test_a_watch_is_kept_longer_than_its_token_lives(topic: str) -> None:
    assert RETENTION[topic] == WATCH_LIFE_MS > TOKEN_LIFE_MS


def test_the_pages_of_topics_say_how_long_they_are_kept() -> None:
    rows = dict(KEPT.findall((SCHEMAS / "README.md").read_text(encoding="utf-8")))
    texts = {spec.name: re.search(r"kept (\d+) days", spec.description) for spec in topic_specs()}
    rows |= {topic: found[1] for topic, found in texts.items() if found}
    assert {*AS_LONG_AS_TOKENS, *AS_LONG_AS_WATCHES} - {"commits"} <= {*rows}
    assert {topic: int(days) * DAY_MS for topic, days in rows.items()} == {
        topic: RETENTION[topic] for topic in rows
    }
