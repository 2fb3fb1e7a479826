# Made by `python -m infra.client.render` from waybill/aio: change that.
"""The questions of a client about the outcome of a token."""

from collections.abc import Iterator

from waybill import plans, questions
from waybill.errors import NotReady, Unreachable
from waybill.outcomes import Outcome
from waybill.sse import Following
from waybill.sync.asking import Asking
from waybill.tokens import AnyToken
from waybill.waiting import WAIT_TIMEOUT_S, Patience


class OutcomeCalls(Asking):
    def outcome(self, token: AnyToken) -> Outcome:
        """Return the outcome of the token as it is now, also `unknown`.

        NotFound: it is no token of this Waybill. Expired: it is older than tokens live.
        """
        return self._run(plans.outcome(token))

    def wait(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> Outcome:
        """Wait until the outcome is final, and return it; it need not be complete.

        StillInProgress or StillUnknown: `timeout_s` is over before that. Other errors are those of
        `outcome`. When a connection breaks, it asks again.
        """
        return self._run(plans.final(token, self._patience(timeout_s), self._has_answered))

    def follow(self, token: AnyToken, timeout_s: float = WAIT_TIMEOUT_S) -> Iterator[Outcome]:
        """Yield every change of the outcome, up to the final one.

        When `timeout_s` is over, it raises as `wait` does.
        """
        patience = self._patience(timeout_s)
        if questions.long(token):
            return self._look_on(token, patience)
        return self._listen(token, patience)

    def _listen(self, token: AnyToken, patience: Patience) -> Iterator[Outcome]:
        following = Following(self._connection.line, questions.token_path(token), patience)
        while not following.has_ended():
            failure: Unreachable | NotReady
            try:
                question, silence_s = following.question(), following.silence_s
                with self._connection.listen(question, silence_s=silence_s) as pieces:
                    for piece in pieces:
                        for outcome in following.read(piece):
                            yield outcome
                        if following.has_ended():
                            return
                failure = following.early_end()
            except (Unreachable, NotReady) as error:
                failure = error
            unknown = following.unknown_in(failure)
            if unknown is not None:
                yield unknown
            self._pause(following.pause_after(failure))

    def _look_on(self, token: AnyToken, patience: Patience) -> Iterator[Outcome]:
        last: Outcome | None = None
        while last is None or not last.final:
            last = self._run(plans.await_change(token, last, patience, self._has_answered))
            yield last
