"""The manifests that a record keeps of those before the one that is applied."""

import builders
from unit.stage_runner.fakes import command
from waybill_shared.contract.events import PipelineRecord
from waybill_stage_runner.core.pipelines.records import (
    EARLIER_BYTES_MAX,
    EARLIER_MAX,
    change_record,
    create_record,
    restart_record,
)

NOW = 1_000


def first(manifest: str = "name: orders # 1") -> PipelineRecord:
    return create_record(command(1), builders.applied(manifest), "running", (), NOW)


def applied(before: PipelineRecord, manifest: str) -> PipelineRecord:
    now = NOW + before.generation
    return change_record(before, builders.applied(manifest), "running", (), now)


def kept(record: PipelineRecord) -> list[tuple[int, str]]:
    return [(each.generation, each.manifest.source) for each in record.earlier]


def test_a_change_keeps_what_was_before_and_until_when() -> None:
    record = applied(applied(first("a"), "b"), "c")
    assert (record.generation, record.manifest.source) == (3, "c")
    assert kept(record) == [(1, "a"), (2, "b")]
    assert record.earlier[-1].until == record.updated_at


def test_a_restart_and_other_topics_are_the_same_manifest() -> None:
    record = restart_record(first("a"), (), NOW)
    assert (record.generation, kept(record)) == (1, []), "its definition is the same"
    assert kept(applied(record, "b")) == [(1, "a")]
    again = restart_record(record, (builders.make_stage(),), NOW)
    assert (again.generation, kept(again)) == (2, [])


def test_so_many_are_kept_as_one_message_can_have() -> None:
    record = first("0")
    for number in range(1, EARLIER_MAX + 5):
        record = applied(record, str(number))
    assert [each.manifest.source for each in record.earlier] == [
        str(n) for n in range(4, EARLIER_MAX + 4)
    ]
    large = "#" * (EARLIER_BYTES_MAX // 4)  # its tree is as large
    record = applied(applied(applied(record, large), large + "a"), "b")
    assert kept(record)[-1] == (record.generation - 1, large + "a")
    assert sum(len(text) for _, text in kept(record)) <= EARLIER_BYTES_MAX
