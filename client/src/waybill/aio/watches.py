"""The questions of a client about watches and events."""

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping

from waybill import questions
from waybill.aio.asking import AsyncAsking
from waybill.errors import NotReady, Unreachable, Unusable
from waybill.event_following import SILENCE_S_MAX, EventFollowing
from waybill.tokens import AnyToken
from waybill.watches import Event, Watch
from waybill.webhooks import new_secret


class AsyncWatchCalls(AsyncAsking):
    async def watch(
        self,
        token: AnyToken,
        *,
        labels: Mapping[str, str] | None = None,
        sinks: Iterable[str] = (),
        through: Iterable[str] = (),
        webhook: str | None = None,
        secret: str | None = None,
    ) -> Watch:
        """Watch a token: Waybill writes an event with these `labels` when the token is final.

        `sinks`: the names of the only sinks to wait for; they may also be read by another stage.
        `through`: further pipelines that the records pass, each of which reads what the one before
        it writes; then `sinks` are those of the last. `webhook`: a URL that gets the event, too,
        signed by `secret`. Without a secret one is made, and the watch that is returned has it.
        NotFound: it is no token of this Waybill. Expired: it is too old. Invalid: a sink, a
        pipeline or a webhook is refused.
        """
        made = _make_secret(webhook, secret)
        hook = _hook(webhook, secret or made)
        view = questions.view(sinks, through)
        asked = questions.watch(token, labels or {}, view, hook, key=str(uuid.uuid4()))
        return Watch.read(await self._write(asked), secret=made)

    async def watches(self) -> AsyncIterator[Watch]:
        """Yield all watches that are open or had their event in the last month, the newest
        first."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self._ask(questions.watches(cursor))
            for each in page.objects("items"):
                yield Watch.read(each)
            cursor = page.text_or_none("next_cursor")

    async def find_watch(self, id: str) -> Watch:
        """Return a watch: whether its event was written, and with which outcome.

        NotFound: there is no such watch.
        """
        return Watch.read(await self._ask(questions.find_watch(id)))

    async def unwatch(self, id: str) -> Watch:
        """End a watch; NotFound when there is none."""
        return Watch.read(await self._write(questions.unwatch(id, str(uuid.uuid4()))))

    async def redeliver(self, id: str) -> Watch:
        """Send the event of a watch to its webhook again, at once.

        Conflict: the watch has no webhook, or its event is not written yet, or is older than a
        week.
        """
        return Watch.read(await self._write(questions.redeliver(id, str(uuid.uuid4()))))

    async def events(
        self,
        *,
        types: Iterable[str] = (),
        pipeline: str | None = None,
        stage: str | None = None,
        watch: str | None = None,
        labels: Mapping[str, str] | None = None,
        after: str | None = None,
    ) -> AsyncIterator[Event]:
        """Yield the events from now on, or after the `position` of an earlier one; it never ends.

        When a connection breaks, it connects again after the last event: none is missed, and none
        comes twice.
        """
        asked = questions.status_events(
            types, pipeline=pipeline, stage=stage, watch=watch, labels=labels or {}
        )
        following = EventFollowing(self._connection.line, asked, after)
        while True:
            failure: Unreachable | NotReady | None = None
            try:
                question = following.question()
                async with self._connection.listen(question, silence_s=SILENCE_S_MAX) as pieces:
                    async for piece in pieces:
                        for event in following.read(piece):
                            yield event
            except (Unreachable, NotReady) as error:
                failure = error
            await self._pause(following.pause_after(failure))


def _make_secret(webhook: str | None, secret: str | None) -> str | None:
    """Make a secret for a webhook that has none.

    It is made here, because the request may be repeated, and its answer has no secret in it.
    """
    return new_secret() if webhook is not None and secret is None else None


def _hook(webhook: str | None, secret: str | None) -> Mapping[str, str] | None:
    if webhook is None and secret is not None:
        raise Unusable("a secret is for a webhook, and there is none")
    return None if webhook is None or secret is None else {"url": webhook, "secret": secret}
