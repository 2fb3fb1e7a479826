"""The questions of a client about a manifest that somebody is writing."""

from waybill import plans, questions
from waybill.aio.asking import AsyncAsking
from waybill.findings import Findings
from waybill.proposals import Proposal
from waybill.waiting import WAIT_TIMEOUT_S


class AsyncManifestCalls(AsyncAsking):
    async def check(
        self, manifest_text: str, *, allow_shared: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> Findings:
        """Check a manifest: return what is wrong, and what it would make. Nothing is changed.

        `allow_shared`: as for `apply`. All errors come together, in the order of the text.
        WaitEnded: the check is not done within `timeout_s`. Invalid: Spark could not compile the
        manifest in time.
        """
        question = questions.check(manifest_text, allow_shared=allow_shared)
        plan = plans.check(question, self._patience(timeout_s), self._has_answered)
        return await self._run(plan)

    async def propose(self, topic: str) -> Proposal:
        """Return columns for an input, proposed from the newest records of a topic, at most 100.

        NotFound: there is no such topic. Invalid: it is empty, has no JSON objects, or is Waybill's
        own.
        """
        return Proposal.read(await self._ask(questions.propose(topic)))

    async def convert(self, sql: str, name: str) -> str:
        """Return a manifest with an input for each CREATE TABLE.

        Invalid: a part cannot be converted; the error has its location.
        """
        converted = await self._ask(questions.convert(sql, name))
        return converted.text("manifest")
