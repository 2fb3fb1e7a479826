"""What a sink must do so that a batch takes effect in it once."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence, FieldMap


class SinkSuperseded(Exception):
    """Another writer has moved the fence since it was read, or came later: this driver must end."""


class SinkUnreachable(Retryable):
    """It does not answer, or cannot be written to; the `hint` says where to look."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLife:
    """One life of a sink's name, and the key of its fence. A name that returns is another sink."""

    name: str
    since: int
    fence_key: str
    moved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The fence as it now stands in the sink, and the sink's own name for this version of it."""

    fence: Fence
    version: FieldMap


class Sink(Protocol):
    """Rows and fence become visible together or not at all, whatever dies in between."""

    @property
    def name(self) -> str: ...

    @property
    def since(self) -> int:
        """Which life of that name it is."""

    @property
    def moved(self) -> int:
        """What was written by drivers of an earlier generation went with its topic; 0: nothing."""

    @property
    def kind(self) -> str: ...

    def claim(self) -> None:
        """Shut out every earlier writer of this sink, where it knows how; may be repeated."""

    def last(self) -> Written | None:
        """The newest fence, read after `claim`; None if nothing was ever written."""

    def write(self, rows: pa.Table | None, fence: Fence) -> Written:
        """Write `rows`, if any, and move the fence in one atomic step.

        Raises SinkSuperseded if the fence has moved since `last` or the previous `write`. The
        returned fence holds what only the sink knows (the outputs of a Kafka sink).
        """

    def await_visible(self, fence: Fence) -> bool:
        """Whether every reader can see what `fence` covers, now or a moment later.

        A commit is not always that moment: readers of Kafka also wait for earlier transactions.
        StageStopped if what was written is gone with its topic.
        """

    def close(self) -> None: ...
