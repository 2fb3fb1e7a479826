"""Judges the tokens of watches: what to wait for, and what to report."""

from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from waybill_shared.contract.codec import to_json
from waybill_shared.contract.deliveries import new_delivery
from waybill_shared.contract.errors import TokenExpired, TokenRefused
from waybill_shared.contract.status_events import final_event, shorten
from waybill_shared.contract.watches import TokenWatch, as_reported
from waybill_shared.contract.words import WatchEnd
from waybill_shared.process.clock import Clock
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.question import SharedQuestion
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.ports import WatchReport
from waybill_status.core.outcomes.outcome import Outcome

EVENT_BYTES_MAX: Final = 500_000  # topics accept a million; outcomes may name many offsets


class WatchJudge:
    """The judge of watches. `source`: of the events. `show`: makes of an outcome what an answer
    shows."""

    def __init__(
        self,
        tokens: Tokens,
        hub: Hub,
        clock: Clock,
        *,
        source: str,
        show: Callable[[Outcome], dict[str, JsonValue]],
    ) -> None:
        self._tokens = tokens
        self._hub = hub
        self._clock = clock
        self._source = source
        self._show = show

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def attend(
        self, watch: TokenWatch, on_final: Callable[[], None]
    ) -> SharedQuestion | WatchEnd | None:
        """Return what to wait for until the callback is called, or how the watch ends at once.
        Return None if this process cannot ask yet: ingress could open the token, so here a key or a
        pipeline is still missing. A question ends with `dismiss`."""
        try:
            token = self._tokens.open(watch.tenant, watch.token)
            claims = await self._tokens.claims(token, watch.view)
        except TokenExpired:
            return WatchEnd.EXPIRED
        except TokenRefused:
            claims = None
        if claims is None or isinstance(claims, TokenRefused):
            return None
        return self._hub.attend(watch.id, token, claims, on_final)

    def dismiss(self, watch: TokenWatch, question: SharedQuestion) -> None:
        self._hub.dismiss(watch.id, question)

    async def outcome_of(self, question: SharedQuestion) -> Outcome | None:
        """Return the final outcome of a question, if it has one."""
        if question.change is None or not question.change.outcome.final:
            return None
        return await self._tokens.mark(question, question.change.outcome)

    def report_of(self, watch: TokenWatch, end: WatchEnd, outcome: Outcome | None) -> WatchReport:
        shown = None if outcome is None else self._show(outcome)
        now_ms = self.now_ms()
        event = final_event(watch, end, shown, source=self._source, now_ms=now_ms)
        text = to_json(event)
        if shown is not None and len(text.encode()) > EVENT_BYTES_MAX:
            shown = shorten(shown)
            event = final_event(watch, end, shown, source=self._source, now_ms=now_ms)
            text = to_json(event)
        after = as_reported(watch, end, event.id, now_ms)
        if watch.webhook is None:
            return WatchReport(event, text, after)
        delivery = new_delivery(after, watch.webhook, text, now_ms)
        return WatchReport(event, text, after, delivery)
