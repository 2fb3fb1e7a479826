"""Whose tokens are, by what was read of the pipelines. Fulfils `Owners`."""

from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.pipelines import PipelineDirectory
from waybill_shared.kafka.news import News


class FollowedOwners:
    def __init__(self, directory: PipelineDirectory, news: News) -> None:
        self._directory = directory
        self._news = news

    def owner_of(self, short_id: str) -> PipelineRecord | None:
        return self._directory.owner_of(short_id)

    async def catch_up(self) -> bool:
        return await self._news.catch_up()
