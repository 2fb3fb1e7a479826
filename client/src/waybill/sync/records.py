# Made by `python -m infra.client.render` from waybill/aio: change that.
"""What clients ask about records: to send them, and for tokens that cover them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from waybill import questions
from waybill.models import Position, Span
from waybill.payloads import Records
from waybill.pipelines import Pipeline
from waybill.sync.outcomes import OutcomeCalls
from waybill.sync.tokens import IssuedToken, Receipt, Replayed, Token
from waybill.tokens import AnyToken, text_of
from waybill.waiting import START_TIMEOUT_S

if TYPE_CHECKING:
    from waybill.sync.tracked import Tracked
    from waybill.tracking import OnDelivery, Producer


class RecordCalls(OutcomeCalls):
    def send(
        self,
        pipeline: str,
        input: str,
        records: Records,
        *,
        atomic: bool = False,
        request_id: str | None = None,
        generation: int | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Send records, as dicts, dataclasses or JSON lines, in one request; or a `Payload`, for
        example of CSV.

        Unusable: a record has a value that JSON cannot hold; nothing is sent. Of rows that do not
        fit the input the good are kept and the bad named in the receipt; when all are bad, Invalid
        is raised and nothing is kept; with `atomic` also when one is bad. NotFound: no such
        pipeline or input. TooLarge: send less at once. The token is of this `generation` of the
        pipeline at least; else of what this client has last changed.

        It has a key of its own, and is repeated safely when a connection breaks: the records are
        kept once. After NoAnswer or Unreachable it is not known whether they were; with a `key` of
        yours you can send the very same records again, for a day, and have them kept once.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.send(
            pipeline,
            input,
            records,
            atomic=atomic,
            request_id=request_id,
            if_match=if_match,
            key=self._key(key),
        )
        return Receipt.read(self._write(question), self._hold)

    def token(self, text: str) -> Token:
        """The token that was stored as text; asks nothing. Unusable: the text cannot be one."""
        return self._hold(text_of(text))

    def token_for(
        self,
        pipeline: str,
        *,
        input: str | None = None,
        positions: Iterable[Position | Span] | None = None,
        connector: str | None = None,
        cluster_id: str | None = None,
        generation: int | None = None,
    ) -> IssuedToken:
        """A token for all that an input holds now, for what a connector of it has written by now,
        or for positions in Kafka.

        `cluster_id`: of the Kafka that the positions are in, to be sure that it is this Waybill's.
        Invalid: a position that is not there, or in no topic that the pipeline reads. NotFound: no
        such pipeline, input or connector. `generation`: as for `send`.
        """
        question = questions.token_for(
            pipeline,
            input=input,
            positions=positions,
            connector=connector,
            cluster_id=cluster_id,
            if_match=self._generations.if_match(pipeline, generation),
        )
        return IssuedToken.read(self._ask(question), self._hold)

    def replay(
        self,
        pipeline: str,
        ids: Iterable[str],
        *,
        again: bool = False,
        generation: int | None = None,
    ) -> Replayed:
        """Send dead letters to the topics that they come from, and get the token for them.

        Each is sent once, however often it is asked for, and the same ids get the same token; with
        `again` they are sent once more. All stages, sinks and pipelines that read the topic get
        them: also a sink that has such a record already. NotFound, Expired (retention took it) or
        Conflict (its topic was created again, or is no input of the pipeline): `rejected` has the
        index of each id that cannot be sent, and then none was. TooLarge: send less than 1,000 at
        once. `generation`: as for `send`.
        """
        if_match = self._generations.if_match(pipeline, generation)
        question = questions.replay(pipeline, ids, again=again, if_match=if_match)
        return Replayed.read(self._ask(question), self._hold)

    def merge(self, tokens: Iterable[AnyToken]) -> Token:
        """One token for exactly what the tokens cover, as old as the oldest of them.

        They may be of several pipelines. NotFound or Expired: some are none of ours, or too old;
        `rejected` has their indexes. TooLarge: more than 10,000, or with too many gaps.
        """
        merged = self._connection.ask(questions.merge(tokens))
        return self._hold(merged.text("token"))

    @contextmanager
    def track(
        self,
        producer: "Producer",
        pipeline: str,
        *,
        on_delivery: "OnDelivery | None" = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> Iterator["Tracked"]:
        """Cover what the block produces to the pipeline's inputs with one token.

        The producer is your own; what goes through the block's `produce` is tracked, and `token`
        covers exactly that. NotFound: no such pipeline. KafkaAway: the producer's Kafka does not
        answer within `timeout_s`. Needs confluent-kafka, which the extra [kafka] brings.
        """
        from waybill.sync.tracked import Tracked
        from waybill.tracking import cluster_of

        known = Pipeline.read(self._connection.ask(questions.pipeline(pipeline)))
        cluster_id = cluster_of(producer, known, timeout_s)
        tracked = Tracked(self, producer, known, cluster_id, on_delivery)
        try:
            yield tracked
        finally:
            tracked.close()

    def _hold(self, text: str) -> Token:
        return Token(text, self)
