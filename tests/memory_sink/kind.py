"""A kind of sinks that only tests have: a model and a row. Its folder is this one."""

from typing import Final

from waybill_shared.contract.manifest.fields import Name
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.manifest.sinks import SinkKind
from waybill_shared.contract.words import Guarantee


class MemorySettings(SinkSettings):
    shelf: Name

    @property
    def target(self) -> str:
        return self.shelf


MEMORY: Final = SinkKind(
    model=MemorySettings,
    writes="rows in this process",
    guarantee=Guarantee.ONCE,
    loader="memory_sink.loader",
    interval_ms=2_000,
    when_shorter="makes tests slow",
)
