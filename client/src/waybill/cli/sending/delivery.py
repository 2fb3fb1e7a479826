"""What one `waybill send` has sent, and what became of it: one token for all that was accepted."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from waybill.cli import exits, render
from waybill.cli.arrival import outcome_lines, watch
from waybill.cli.exits import ExitCode
from waybill.cli.render import Form
from waybill.cli.sending.bar import Bar
from waybill.cli.sending.source import OpenedSource
from waybill.cli.sending.units import Piece, RequestLimits, cut
from waybill.errors import Invalid, TooLarge, WaybillError
from waybill.models import Rejected
from waybill.outcomes import Outcome
from waybill.payloads import Payload

if TYPE_CHECKING:
    from waybill.sync.client import Client

MERGED_MAX = 1_000  # tokens in one request; Waybill accepts ten times as many


@dataclass(slots=True, kw_only=True)
class Delivery:
    """All that one command sends, and what became of it.

    `requests` counts those that were tried; with `key`, each has a key of its own.
    """

    pipeline: str
    input: str
    output: Form
    source: OpenedSource
    generation: int | None = None
    key: str | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    requests: int = 0
    sent_to: int = 0
    sent_bytes: int = 0
    tokens: list[str] = field(default_factory=list)
    accepted: int = 0
    rejected: list[dict[str, object]] = field(default_factory=list)
    outcome: Outcome | None = None

    def carry_out(self, client: "Client", wait_s: float | None) -> None:
        """Send all, print the one token, and follow it if `wait_s` is given.

        After a failure, print the token of what was sent.
        """
        try:
            try:
                self._send_all(client)
            except BaseException:  # also Ctrl-C: what was sent has a token
                with suppress(WaybillError):
                    self._merge(client)
                raise
            self._merge(client)
            if wait_s is not None:
                self._follow(client, wait_s)
        finally:
            self._print_json()

    def _send_all(self, client: "Client") -> None:
        """Send piece after piece, in the order of the source."""
        units, wanted = self.source.units, self.output is not Form.JSON
        try:
            with Bar(self.source.size, wanted=wanted) as bar:
                for piece in cut(units.each, units.head, self.limits):
                    self._send(client, piece)
                    bar.show(self._done())
        except BaseException:
            self._complain_of_the_rest()
            raise
        if not self.sent_to:
            raise WaybillError("there were no records to send")
        render.talk(f"{self.accepted} accepted, {len(self.rejected)} rejected")

    def _merge(self, client: "Client") -> None:
        """Merge the tokens into one, and print it; if that fails, print each by itself."""
        try:
            while len(self.tokens) > 1:
                batches = range(0, len(self.tokens), MERGED_MAX)
                self.tokens = [
                    str(client.merge(self.tokens[at : at + MERGED_MAX])) for at in batches
                ]
        except WaybillError:
            render.complain(f"the {len(self.tokens)} tokens of the requests cannot be merged")
            raise
        finally:
            if self.output is Form.TABLE:
                render.data(self.tokens)

    def _follow(self, client: "Client", wait_s: float) -> None:
        for token in self.tokens:
            self.outcome = watch(client, token, wait_s)
            if self.output is Form.TABLE:
                render.data(outcome_lines(self.outcome))

    def _print_json(self) -> None:
        """Print the answer as JSON, after a failure, too: what was sent has its token."""
        if self.output is not Form.JSON or not (self.tokens or self.rejected):
            return
        merged = len(self.tokens) == 1
        answer: dict[str, object] = {
            "token": self.tokens[0] if merged else None,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "outcome": self.outcome.raw if self.outcome else None,
        }
        if len(self.tokens) > 1:
            answer["unmerged"] = self.tokens
        render.as_json(answer)

    def exit_code(self) -> ExitCode:
        """Return the exit code; a rejected row outweighs all else, because no token covers it."""
        if self.rejected:
            return ExitCode.ERROR
        return exits.of_outcome(self.outcome) if self.outcome else ExitCode.OK

    def _send(self, client: "Client", piece: Piece) -> None:
        """Send a piece, in smaller parts if Waybill accepts less at once."""
        try:
            self._request(client, piece)
        except TooLarge as problem:
            if len(piece.units) == 1 or len(piece.places) == 1:
                raise
            self.limits.lower(piece, problem.members)
            for part in cut(piece.units, piece.head, self.limits):
                self._send(client, part)
            return
        self.sent_to = piece.ends_at
        self.sent_bytes += len(piece.content)

    def _request(self, client: "Client", piece: Piece) -> None:
        form = self.source.format
        body = Payload(
            content=piece.content,
            media_type=form.media_type,
            options=form.options_to_send(self.source.options, piece.begins_at),
        )
        try:
            receipt = client.send(
                self.pipeline, self.input, body, generation=self.generation, key=self._next_key()
            )
        except Invalid as problem:
            self._reject(piece, problem.rejected)
            if len(problem.rejected) < len(piece.places):  # the others were not written either
                raise
            render.hint(problem)
            return
        self._reject(piece, receipt.rejected)
        self.accepted += receipt.accepted
        self.tokens.append(str(receipt.token))

    def _next_key(self) -> str | None:
        """Return the key of the next request; the first is as given, and a refused one counts,
        too."""
        self.requests += 1
        return self.key if self.key is None or self.requests == 1 else f"{self.key}/{self.requests}"

    def _reject(self, piece: Piece, rejected: Iterable[Rejected]) -> None:
        form = self.source.format
        for row in rejected:
            place = piece.places[row.index]
            self.rejected.append({form.noun: place, "reason": row.reason})
            where = "" if form.reasons_have_line else f"{form.noun} {place}: "
            render.complain(f"{where}{row.reason}")

    def _done(self) -> int:
        return self.sent_bytes if self.source.size is None else self.source.position()

    def _complain_of_the_rest(self) -> None:
        if not self.sent_to:
            return
        render.complain(f"everything up to {self.source.format.noun} {self.sent_to} was sent")
        again = "run the same command again: nothing is written twice"
        render.complain("hint: send the rest" if self.key is None else f"hint: {again}")
