"""Replays dead letters, as many as are wanted, in as many requests as that takes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from waybill.errors import Conflict, Expired, NotFound, TooLarge

if TYPE_CHECKING:
    from waybill.sync.client import Client
    from waybill.sync.tokens import Replayed

AT_ONCE: Final = 1_000  # dead letters in one request


class Sending:
    """The dead letters that one command replays; what was done is known after a fault, too.

    `left_out`: the ids that cannot be replayed, and why. Without `leave_out` one of those is a
    fault.
    """

    def __init__(
        self, client: "Client", pipeline: str, *, again: bool, yes: bool, leave_out: bool
    ) -> None:
        self.left_out: dict[str, str] = {}
        self.yes = yes
        """Whether old rows may take the place of newer ones."""
        self._client = client
        self._pipeline = pipeline
        self._again = again
        self._leave_out = leave_out
        self.done: list[Replayed] = []

    @property
    def replayed(self) -> int:
        return sum(done.replayed for done in self.done)

    @property
    def sinks(self) -> list[str]:
        """Those that get a record, each after its stage."""
        return sorted({name for done in self.done for name in done.sinks})

    @property
    def already(self) -> int:
        return sum(done.already for done in self.done)

    def send(self, ids: Sequence[str]) -> None:
        for at in range(0, len(ids), AT_ONCE):
            self._send(ids[at : at + AT_ONCE])

    def token(self) -> str:
        """Return one token for all that was sent."""
        tokens = [done.token for done in self.done]
        return str(tokens[0] if len(tokens) == 1 else self._client.merge(tokens))

    def _replay(self, ids: Sequence[str]) -> "Replayed":
        return self._client.replay(self._pipeline, ids, again=self._again, yes=self.yes)

    def _send(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        try:
            self.done.append(self._replay(ids))
        except TooLarge:
            if len(ids) == 1:
                raise
            half = len(ids) // 2
            self._send(ids[:half])
            self._send(ids[half:])
        except (NotFound, Expired, Conflict) as refusal:
            if not (self._leave_out and refusal.rejected):
                raise
            reasons = {each.index: each.reason for each in refusal.rejected}
            self.left_out.update({ids[index]: reason for index, reason in reasons.items()})
            self._send([each for index, each in enumerate(ids) if index not in reasons])
