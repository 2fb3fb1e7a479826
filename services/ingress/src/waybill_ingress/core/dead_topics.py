"""Checks that dead letters have topics of their own among all pipelines of a tenant.

Ingress does it because a runner knows only some of the pipelines. A pipeline may read the dead
letters of another one on purpose. Then it is created after that one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest

HINT: Final = "give dead letters a topic of their own: deadLetter: {topic: …}"


def dead_topic_problems(
    manifest: Manifest, known: PipelineRecord | None, others: Iterable[PipelineRecord]
) -> Iterator[Problem]:
    """Yield the conflicts that the manifest would add. `known` is its pipeline now, if there is
    one.
    """
    before = frozenset() if known is None else _dead_topic_at(known.manifest)
    coming = manifest.dead_letter_topics() - before
    written = {
        sink.settings.feeds.topic: f"stages.{s}.sinks.{k}.{sink.kind}.topic"
        for s, stage in enumerate(manifest.stages)
        for k, sink in enumerate(stage.sinks)
        if sink.settings.feeds is not None
    }
    for other in others:
        for topic, owner in _topics_of(other):
            if topic in coming:
                message = f"its dead letters would go to {topic!r}, which is that of {owner}"
                yield Problem(message=message, path="deadLetter.topic", hint=HINT)
        for topic in _dead_topic_at(other.manifest) & written.keys() if written else ():
            message = f"topic {topic!r} has the dead letters of pipeline {other.name!r}"
            yield Problem(message=message, path=written[topic], hint="write to another topic")


def _dead_topic_at(manifest: AppliedManifest) -> frozenset[str]:
    """Return the dead-letter topics of the manifest.

    None for a manifest that is refused today: its runner reports what is wrong with it.
    """
    try:
        return manifest.model.dead_letter_topics()
    except UserError:
        return frozenset()


def _topics_of(record: PipelineRecord) -> Iterator[tuple[str, str]]:
    for stage in record.stages:
        for source in stage.inputs:
            yield source.topic, f"input {source.name!r} of pipeline {record.name!r}"
        for sink in stage.sinks:
            if sink.topic_id is not None:
                yield sink.target, f"sink {sink.name!r} of pipeline {record.name!r}"
