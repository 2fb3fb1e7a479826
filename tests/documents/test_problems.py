"""One table of problems: the page, the services and the SDK know the same slugs."""

import re
from pathlib import Path

import pytest

from waybill.errors import MOMENTARY, NotAllowed, NotFound, NotReady, ProblemError
from waybill.fields import Fields
from waybill.problems import KIND_BY_STATUS, problem_from
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Acts, Slug, problem_body
from waybill_shared.tools.problems_page import render

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "problems.md"
TABLE = ROOT / "shared/src/waybill_shared/contract/problems.py"
RAISED = re.compile(r"\bSlug\.([A-Z_]+)\b")
NEVER_ASKED = {405, 415, 500}
"""What the SDK does not bring about, or cannot mend: it has no class of its own."""


def product() -> list[Path]:
    folders = [*(ROOT / "services").glob("*/src"), ROOT / "shared/src", ROOT / "infra"]
    return [path for folder in folders for path in folder.rglob("*.py") if path != TABLE]


def as_read(slug: Slug) -> ProblemError:
    """A problem of that slug as callers of the SDK get it."""
    body = problem_body(Refusal(slug, "x"), request_id="r")
    error = problem_from(slug.status, {}, Fields(body, "the answer"))
    assert error is not None
    return error


def test_the_page_shows_the_table_as_it_is() -> None:
    same = PAGE.read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m waybill_shared.tools.problems_page > docs/problems.md`"


def test_the_table_has_no_problem_that_nobody_raises() -> None:
    raised = {name for path in product() for name in RAISED.findall(path.read_text("utf-8"))}
    assert raised == set(Slug.__members__)


@pytest.mark.parametrize("slug", Slug)
def test_each_slug_is_called_by_its_name(slug: Slug) -> None:
    assert Slug[slug.upper()] is slug
    assert slug.meaning


def test_the_sdk_repeats_what_is_a_matter_of_moments_and_nothing_else() -> None:
    """Of all others something may have been done, or a second try would be refused as well."""
    assert {slug for slug in Slug if slug.acts is Acts.MOMENTS} == MOMENTARY
    for slug in Slug:
        error = as_read(slug)
        momentary = isinstance(error, NotReady) and error.momentary
        assert momentary is (slug.acts is Acts.MOMENTS), slug


def test_the_sdk_has_an_error_for_each_status_of_the_table() -> None:
    assert {slug.status for slug in Slug} - set(KIND_BY_STATUS) == NEVER_ASKED


@pytest.mark.parametrize("slug", Slug)
def test_who_acts_is_the_same_in_the_sdk(slug: Slug) -> None:
    error = as_read(slug)
    if slug.acts is Acts.CALLER:
        assert not isinstance(error, NotReady)
    elif slug.acts is not Acts.US:
        assert isinstance(error, NotReady)
    may_not = (
        slug.startswith(("key_", "scope_", "origin_", "host_")) and slug is not Slug.KEY_REUSED
    )
    assert isinstance(error, NotAllowed) is may_not
    assert isinstance(error, NotFound) is slug.endswith("not_found")
