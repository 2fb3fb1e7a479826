"""Writes docs/problems.md from the table of problems."""

from typing import Final

from waybill_shared.contract.problems import HEADERS_OF, Slug, headers_of

INTRODUCTION: Final = """# Problems

<!-- Made by `python -m waybill_shared.tools.problems_page > docs/problems.md`. Change the table
     `waybill_shared.contract.problems.Slug`, not this file. -->

When Waybill refuses a request, its answer is a problem document (RFC 9457,
`application/problem+json`):

```json
{
  "type": "urn:waybill:problem:pipeline_not_found",
  "title": "pipeline not found",
  "status": 404,
  "detail": "there is no pipeline 'order'",
  "hint": "did you mean 'orders'? known pipelines: orders",
  "known": ["orders"],
  "request_id": "8f14e45fceea167a5a36dedd4bea2543"
}
```

Programs should look at the last word of `type`, which never changes. `detail` and `hint` are for
people, and their text may change. The table names the other members. Where it says "try again in a
moment", nothing of the request was done: send the same request again, as the SDK does by itself.

A command for a pipeline may be refused after it was accepted. The problem then has the members of
the failed operation too, as `GET /v1/operations/{id}` shows it: its `id`, its `errors`, and as
`problem` the word that `type` ends with.
"""


def render() -> str:
    """Render the complete document."""
    rows = [f"| `{slug}` | {slug.status} | {slug.meaning} | {slug.acts} |" for slug in Slug]
    head = ["| problem | status | what it says | who acts |", "|---|---|---|---|"]
    return "\n".join([INTRODUCTION, *head, *rows, "", *_headers(), ""])


def _headers() -> list[str]:
    found = {str(status): headers for status, headers in HEADERS_OF.items()}
    found |= {f"`{slug}`": headers_of(slug) for slug in Slug if slug.status not in HEADERS_OF}
    return [
        f"- {what} comes with `{name}: {value}`."
        for what, headers in found.items()
        for name, value in headers.items()
    ]


if __name__ == "__main__":
    print(render(), end="")
