# Made by `python -m infra.client.render` from waybill/aio: change that.
"""What clients ask while a manifest is written."""

from waybill import plans, questions
from waybill.findings import Findings
from waybill.proposals import Proposal
from waybill.sync.asking import Asking
from waybill.waiting import WAIT_TIMEOUT_S


class ManifestCalls(Asking):
    def check(
        self, manifest_text: str, *, allow_shared: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> Findings:
        """What is wrong with a manifest, and what it would make; nothing is made or changed.

        `allow_shared`: as `apply` has it.

        Errors come together, in the order of the text. WaitEnded: nobody has checked it within
        `timeout_s`. Invalid: Spark could not compile it in time.
        """
        question = questions.check(manifest_text, allow_shared=allow_shared)
        plan = plans.check(question, self._patience(timeout_s), self._heard)
        return self._run(plan)

    def propose(self, topic: str) -> Proposal:
        """Columns for an input, from the newest records of a topic, a hundred at most.

        NotFound: no such topic. Invalid: it is empty, holds no JSON objects, or is Waybill's own.
        """
        return Proposal.read(self._ask(questions.propose(topic)))

    def convert(self, sql: str, name: str) -> str:
        """A manifest with an input for each CREATE TABLE; Invalid has the place of what is not."""
        converted = self._ask(questions.convert(sql, name))
        return converted.text("manifest")
