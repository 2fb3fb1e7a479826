"""What clients ask while a manifest is written; `Client` and `AsyncClient` have these methods."""

from abc import abstractmethod

from waybill import questions
from waybill.fields import Fields
from waybill.proposals import Proposal
from waybill.questions import Question


class ManifestCalls:
    @abstractmethod
    def _ask(self, question: Question) -> Fields: ...

    def propose(self, topic: str) -> Proposal:
        """Columns for an input, from the newest records of a topic, a hundred at most.

        NotFound: no such topic. Invalid: it is empty, holds no JSON objects, or is Waybill's own.
        """
        return Proposal.read(self._ask(questions.propose(topic)))

    def convert(self, sql: str, name: str) -> str:
        """A manifest with an input for each CREATE TABLE; Invalid has the place of what is not."""
        return self._ask(questions.convert(sql, name)).text("manifest")


class AsyncManifestCalls:
    @abstractmethod
    async def _ask(self, question: Question) -> Fields: ...

    async def propose(self, topic: str) -> Proposal:
        """As `Client.propose`."""
        return Proposal.read(await self._ask(questions.propose(topic)))

    async def convert(self, sql: str, name: str) -> str:
        """As `Client.convert`."""
        return (await self._ask(questions.convert(sql, name))).text("manifest")
