"""What a process knows of all pipelines."""

from dataclasses import replace

from builders import NOW, make_input, make_record, make_stage
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.tokens import pipeline_id
from waybill_shared.topic_views.pipelines import PipelineDirectory


def make_directory(*records: PipelineRecord) -> PipelineDirectory:
    directory = PipelineDirectory()
    for record in records:
        directory.accept(record)
    return directory


def test_two_creations_at_once_mean_one_pipeline() -> None:
    life = make_directory().life_for("default", "orders")
    assert make_directory().life_for("default", "orders") == life
    assert make_directory().life_for("default", "other").uid != life.uid
    assert make_directory().life_for("other", "orders").uid != life.uid


def test_living_pipeline_keeps_its_uid() -> None:
    first = make_directory().life_for("default", "orders")
    directory = make_directory(make_record(uid=first.uid))
    assert directory.life_for("default", "orders") == first


def test_each_life_has_a_uid_of_its_own() -> None:
    directory = PipelineDirectory()
    uids = []
    for number in range(3):
        life = directory.life_for("default", "orders")
        assert life.number == number
        uids.append(life.uid)
        record = make_record(uid=life.uid, life=number)
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
    """Whatever the clocks of those who recorded them say."""
    later = make_record(uid="two", life=1, created_at=NOW - 3_600_000)
    directory = make_directory(later, make_record(uid="one", desired="deleted"))
    assert directory.by_name("default", "orders") == later
    assert directory.life_for("default", "orders").uid == "two"


def test_tokens_of_a_deleted_pipeline_still_resolve() -> None:
    directory = make_directory(make_record(), make_record(desired="deleted"))
    owner = directory.owner_of(pipeline_id("default", make_record().pipeline_uid))
    assert owner is not None
    assert owner.desired == "deleted"
    assert directory.living("default") == []


def test_tokens_of_an_input_that_is_gone_still_resolve() -> None:
    """Also when `waybill.pipelines` was compacted, and only the newest record is left."""
    only = make_record(generation=9, stages=(make_stage(inputs=(make_input("other"),)),))
    directory = make_directory(only)
    assert directory.owner_of(pipeline_id("default", only.pipeline_uid)) == only
    assert directory.owner_of(pipeline_id("other", only.pipeline_uid)) is None


def test_living_pipelines_are_those_of_the_tenant_by_name() -> None:
    directory = make_directory(
        make_record("b", uid="1"),
        make_record("a", uid="2"),
        make_record("c", uid="3", desired="deleted"),
        make_record("d", uid="4", tenant="other"),
    )
    assert [record.name for record in directory.living("default")] == ["a", "b"]


def other_name(name: str = "sales", *was: str, uid: str = "one") -> PipelineRecord:
    return replace(make_record(name, uid=uid), was=was or ("orders",))


def reservation(
    name: str = "sales", *, by: str = "one", life: int = 0, generation: int = 1
) -> PipelineRecord:
    """The record of a name that was reserved for a generation of a pipeline."""
    record = make_record(name, uid=f"{name} {life}", desired="deleted", stages=(), life=life)
    return replace(record, reserved_for=by, reserved_in=generation)


def test_pipeline_is_found_by_its_present_name_and_known_by_its_former_ones() -> None:
    directory = make_directory(
        reservation(), reservation("trade"), other_name("trade", "orders", "sales")
    )
    found = directory.by_name("default", "trade")
    assert found is not None
    assert found.pipeline_uid == "one"
    for name in ("orders", "sales"):
        assert directory.by_name("default", name) is None
        assert directory.former_holder("default", name) == found
    assert directory.former_holder("default", "trade") is None
    assert directory.former_holder("default", "other") is None
    assert [each.name for each in directory.living("default")] == ["trade"]


def test_order_of_records_does_not_count() -> None:
    records = (other_name(), reservation())
    for order in (records, records[::-1]):
        found = make_directory(*order).by_name("default", "sales")
        assert found is not None
        assert found.pipeline_uid == "one"


def test_name_that_the_next_generation_has_not_got_is_free_again() -> None:
    orders = replace(make_record(uid="one"), generation=3)
    for generation, free in ((1, True), (2, True), (3, False), (4, False)):
        directory = make_directory(orders, reservation(generation=generation))
        assert (directory.former_holder("default", "sales") is None) is free
        assert directory.life_for("default", "sales").number == (1 if free else 0)
        if not free:
            assert directory.life_for("default", "sales").uid == "one"
    later = replace(other_name("trade", "orders", "sales"), generation=5)
    directory = make_directory(later, reservation(generation=1), reservation("trade"))
    assert directory.former_holder("default", "sales") == later, "what it once had it keeps"
    assert directory.by_name("default", "trade") == later


def test_name_that_was_reserved_belongs_to_that_pipeline_before_it_is_called_so() -> None:
    directory = make_directory(make_record(uid="one"), reservation())
    assert directory.by_name("default", "sales") is None
    waiting = directory.former_holder("default", "sales")
    assert waiting is not None
    assert waiting.name == "orders"
    assert directory.life_for("default", "sales").uid == "one"


def test_all_names_are_free_when_the_pipeline_is_deleted_and_begin_their_next_life() -> None:
    directory = make_directory(reservation(), replace(other_name(), desired="deleted"))
    for name in ("orders", "sales"):
        assert directory.by_name("default", name) is None
        assert directory.former_holder("default", name) is None
        life = directory.life_for("default", name)
        assert (life.number, life.uid not in ("one", "sales 0")) == (1, True)


def test_name_has_the_pipeline_of_its_newest_life() -> None:
    """Its first life was that of a pipeline that is deleted."""
    first = make_record("sales", uid="sales 0", desired="deleted")
    directory = make_directory(first, reservation(life=1), other_name())
    found = directory.by_name("default", "sales")
    assert found is not None
    assert found.pipeline_uid == "one"
