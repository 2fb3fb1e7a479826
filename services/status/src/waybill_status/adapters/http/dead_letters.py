"""Routes of status that show dead letters: HTTP in, use case, HTTP out. Decides nothing."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime

from waybill_shared.contract.problems import Slug
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import DeadReason
from waybill_shared.http.app import caller
from waybill_shared.http.openapi import refusals
from waybill_status.adapters.http.examples import shown
from waybill_status.adapters.http.models import DeadLettersAnswer
from waybill_status.app.dead_letters.reading import DeadLetterReader
from waybill_status.core.dead_letters.dead_letter_view import DeadLetter, LetterFilter

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000
CURSOR_CHARACTERS_MAX: Final = 60_000

Reason = Annotated[DeadReason | None, Query(description=meanings(DeadReason))]
Stage = Annotated[str | None, Query(description="the stage that could not process them")]
Since = Annotated[AwareDatetime | None, Query(description="those that went there since then")]
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="of one page")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=CURSOR_CHARACTERS_MAX,  # a longer URL is not read at all
        pattern=r"^[A-Za-z0-9_-]*$",  # other characters are up to twelve times as long in a URL
        description="`next_cursor` of the page before",
    ),
]


def dead_letters_router(letters: DeadLetterReader) -> APIRouter:
    router = APIRouter(prefix="/v1/pipelines/{pipeline}/dead-letters", tags=["pipelines"])

    @router.get(
        "",
        summary="Records that a pipeline could not process, the newest first",
        responses={
            200: shown("dead_letters"),
            **refusals(
                Slug.PIPELINE_NOT_FOUND,
                Slug.PIPELINE_NOT_READY,
                Slug.INVALID,
                Slug.NOT_AVAILABLE_NOW,
            ),
        },
    )
    async def get_dead_letters(
        request: Request,
        pipeline: str,
        *,
        reason: Reason = None,
        stage: Stage = None,
        since: Since = None,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
    ) -> DeadLettersAnswer:
        """Read the dead-letter topics: letters are there as long as these keep them. Key and value
        are shortened to 1,000 characters. If there is much to search, a page may have less than
        `limit`, or nothing, and still a `next_cursor`. The last page has none."""
        wanted = LetterFilter(
            reason=reason,
            stage=stage,
            since=None if since is None else max(0, int(since.timestamp() * 1000)),
        )
        page = await letters.page(caller(request), pipeline, wanted, limit=limit, cursor=cursor)
        return DeadLettersAnswer(items=list(page.items), next_cursor=page.next_cursor)

    @router.get(
        "/{id}",
        summary="One dead letter, with all of its key, value and headers",
        responses={
            200: shown("dead_letter"),
            **refusals(
                Slug.PIPELINE_NOT_FOUND,
                Slug.DEAD_LETTER_NOT_FOUND,
                Slug.DEAD_LETTER_GONE,
                Slug.PIPELINE_NOT_READY,
                Slug.NOT_AVAILABLE_NOW,
            ),
        },
    )
    async def get_dead_letter(request: Request, pipeline: str, id: str) -> DeadLetter:
        """Return the letter. `headers` are the record's own. What is not UTF-8 is in base64, in the
        member with that name."""
        return await letters.one(caller(request), pipeline, id)

    return router
