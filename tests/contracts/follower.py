"""Who follows a topic: what was told before somebody asked for news is known then."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from builders import TENANT, make_record
from integration.waiting import eventually
from waybill_ingress.app.ports import Directory, News
from waybill_shared.contract.events import PipelineRecord

T = TypeVar("T")


class Bench(Protocol):
    """`waybill.pipelines`, in which nothing was told as yet, and a service that follows it."""

    @property
    def news(self) -> News: ...

    @property
    def directory(self) -> Directory: ...

    def run(self, work: Callable[[], Awaitable[T]]) -> T: ...

    def tell(self, record: PipelineRecord) -> None: ...


class FollowerContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_where_nothing_was_told_all_is_known(self, bench: Bench) -> None:
        assert bench.run(bench.news.catch_up)
        eventually(bench.news.has_caught_up)  # its own thread says so
        assert bench.directory.living(TENANT) == []

    def test_what_was_told_is_known_to_who_has_heard(self, bench: Bench) -> None:
        for number in range(3):
            bench.tell(make_record(f"orders-{number}", uid=f"uid-{number}"))
        assert bench.run(bench.news.catch_up)
        assert len(bench.directory.living(TENANT)) == 3
        bench.tell(make_record("late", uid="uid-late"))
        assert bench.run(bench.news.catch_up)
        assert bench.directory.by_name(TENANT, "late") is not None
