"""Replays dead letters, as many as are wanted, in as many requests as that takes."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from waybill.cli import render
from waybill.cli.asking import require_yes
from waybill.cli.render import Form
from waybill.dead_letters import Edit
from waybill.errors import Conflict, Expired, NotFound, TooLarge

if TYPE_CHECKING:
    from waybill.sync.client import Client
    from waybill.sync.tokens import Replayed

AT_ONCE: Final = 1_000  # dead letters in one request
LEFT_OUT_SHOWN: Final = 5


class Sending:
    """The dead letters that one command replays; what was done is known after a fault, too.

    `edited`: what is changed of the only letter.

    `left_out`: the ids that cannot be replayed, and why. Without `leave_out` one of those is a
    fault.
    """

    def __init__(
        self,
        client: "Client",
        pipeline: str,
        *,
        again: bool,
        yes: bool,
        leave_out: bool = False,
        edited: Edit | None = None,
    ) -> None:
        self.left_out: dict[str, str] = {}
        self.yes = yes
        """Whether old rows may take the place of newer ones."""
        self._client = client
        self._pipeline = pipeline
        self._again = again
        self._leave_out = leave_out
        self._edited = edited
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
        return self._client.replay(
            self._pipeline, ids, again=self._again, yes=self.yes, edited=self._edited
        )

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


def send_asking(sending: Sending, wanted: Sequence[str]) -> None:
    """Replay them; ask where an old row may take the place of a newer one."""
    try:
        sending.send(wanted)
    except Conflict as refusal:
        if refusal.slug != "replay_not_confirmed" or sending.yes:
            raise
        require_yes(str(refusal), "Replay them all the same?", "if that is meant, add --yes")
        sending.yes = True
        sending.send(wanted)


def report(sending: Sending, output: Form) -> None:
    """Print what was left out, how many were replayed, and the token."""
    for letter, why in islice(sending.left_out.items(), LEFT_OUT_SHOWN):
        render.talk(f"left out: {letter}: {why}")
    if (more := len(sending.left_out) - LEFT_OUT_SHOWN) > 0:
        render.talk(f"left out: {more} more")
    if not sending.done:
        return
    token = sending.token()
    if output is Form.JSON:
        done = {"replayed": sending.replayed, "already": sending.already, "sinks": sending.sinks}
        render.as_json({"token": token, **done, "left_out": list(sending.left_out)})
    else:
        before = f", {sending.already} were before" if sending.already else ""
        into = f", into {', '.join(sending.sinks)}" if sending.sinks else ""
        render.talk(f"{render.count(sending.replayed, 'letter')} replayed{before}{into}")
        render.exactly(token)
