"""What a process knows of all pipelines."""

from dataclasses import replace

from builders import NOW, make_input, make_record, make_stage
from shared.events import PipelineRecord
from shared.pipelines import PipelineDirectory
from shared.tokens import input_id


def make_directory(*records: PipelineRecord) -> PipelineDirectory:
    directory = PipelineDirectory()
    for record in records:
        directory.accept(record)
    return directory


def test_two_creations_at_once_mean_one_pipeline() -> None:
    uid = make_directory().uid_for("default", "orders")
    assert make_directory().uid_for("default", "orders") == uid
    assert make_directory().uid_for("default", "other") != uid
    assert make_directory().uid_for("other", "orders") != uid


def test_living_pipeline_keeps_its_uid() -> None:
    first = make_directory().uid_for("default", "orders")
    directory = make_directory(make_record(uid=first))
    assert directory.uid_for("default", "orders") == first


def test_each_life_has_a_uid_of_its_own() -> None:
    directory = PipelineDirectory()
    uids = []
    for life in range(3):
        uids.append(directory.uid_for("default", "orders"))
        record = make_record(uid=uids[-1], created_at=NOW + life)
        directory.accept(record)
        directory.accept(replace(record, desired="deleted"))
        assert directory.by_name("default", "orders") is None
    assert len(set(uids)) == 3


def test_newest_record_counts() -> None:
    directory = make_directory(make_record(), make_record(generation=2))
    known = directory.by_name("default", "orders")
    assert known is not None
    assert known.generation == 2


def test_late_record_of_an_earlier_life_hides_no_later_one() -> None:
    later = make_record(uid="two", created_at=NOW + 1)
    directory = make_directory(later, make_record(uid="one", desired="deleted"))
    assert directory.by_name("default", "orders") == later


def test_tokens_of_a_deleted_pipeline_still_resolve() -> None:
    directory = make_directory(make_record(), make_record(desired="deleted"))
    owner = directory.owner_of(input_id("default", make_record().pipeline_uid, "orders"))
    assert owner is not None
    assert owner.input_name == "orders"
    assert owner.record.desired == "deleted"
    assert directory.living("default") == []


def test_only_root_inputs_own_tokens() -> None:
    inputs = (make_input("orders"), make_input("enriched", topic_id="A", root=False))
    directory = make_directory(make_record(stages=(make_stage(inputs=inputs),)))
    uid = make_record().pipeline_uid
    assert directory.owner_of(input_id("default", uid, "orders")) is not None
    assert directory.owner_of(input_id("default", uid, "enriched")) is None
    assert directory.owner_of(input_id("other", uid, "orders")) is None


def test_living_pipelines_are_those_of_the_tenant_by_name() -> None:
    directory = make_directory(
        make_record("b", uid="1"),
        make_record("a", uid="2"),
        make_record("c", uid="3", desired="deleted"),
        make_record("d", uid="4", tenant="other"),
    )
    assert [record.name for record in directory.living("default")] == ["a", "b"]
