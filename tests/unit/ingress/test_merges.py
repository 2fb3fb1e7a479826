"""One token of many: what it covers, how old it is, which are refused. The seals are real."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocks import NOW, FixedClock
from unit.ingress.fakes import OLD_ID, RING, sealed_token, span, unsealed
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app.merges import TOKENS_MAX, Merges
from waybill_ingress.core.token_coverage import merge_parts
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Part, Token, open_token, pipeline_id, seal
from waybill_shared.contract.vectors import Span

Covered = set[tuple[str, int, str, int, int]]


def issuer() -> Merges:
    mint = RandomMint(RING, FixedClock())
    return Merges(mint, mint)


def merge(*texts: str) -> Token:
    merges = issuer()
    return unsealed(asyncio.run(merges.merge(ANYONE, texts)).token)


def refusal(*texts: str) -> Refusal:
    with pytest.raises(Refusal) as refused:
        merge(*texts)
    return refused.value


def test_touching_and_repeated_spans_become_one() -> None:
    (part,) = merge(
        sealed_token(span(0, 3, 5)),
        sealed_token(span(0, 0, 3), span(1, 7, 8)),
        sealed_token(span(0, 2, 4)),
    ).parts
    assert part.spans == (span(0, 0, 5), span(1, 7, 8))


def test_a_gap_stays_a_gap() -> None:
    (part,) = merge(sealed_token(span(0, 0, 3)), sealed_token(span(0, 4, 5))).parts
    assert part.spans == (span(0, 0, 3), span(0, 4, 5))


def test_pipelines_and_generations_stay_apart() -> None:
    """A later sink is not asked of an earlier token, and each pipeline has its own answer."""
    old, new = sealed_token(span(0, 0, 3)), sealed_token(span(0, 3, 5), generation=2)
    other = sealed_token(span(0, 0, 3), uid="uid-2")
    parts = merge(old, new, other).parts
    ours = pipeline_id(DEFAULT_TENANT, "uid-1")
    assert {(part.pipeline_id == ours, part.generation): part.spans for part in parts} == {
        (True, 1): (span(0, 0, 3),),
        (True, 2): (span(0, 3, 5),),
        (False, 1): (span(0, 0, 3),),
    }


def test_ten_thousand_tokens_become_one_short_one() -> None:
    texts = [sealed_token(span(at % 4, at // 4, at // 4 + 1)) for at in range(TOKENS_MAX)]
    merged = asyncio.run(issuer().merge(ANYONE, texts)).token
    assert len(merged) <= 160
    (part,) = unsealed(merged).parts
    assert part.spans == tuple(span(partition, 0, TOKENS_MAX // 4) for partition in range(4))


def test_more_tokens_than_that_are_refused() -> None:
    refused = refusal(*["x"] * (TOKENS_MAX + 1))
    assert refused.slug == "too_many_tokens"
    assert refused.members["tokens_max"] == TOKENS_MAX


def test_a_merged_token_that_nobody_could_carry_is_refused() -> None:
    def scattered(number: int) -> str:
        starts = range(number * 10**6, number * 10**6 + 20_000, 2)
        return sealed_token(*(span(0, 10**11 + at, 10**11 + at + 1) for at in starts))

    assert refusal(*map(scattered, range(3))).slug == "token_too_large"


def test_it_is_as_old_as_its_oldest_and_stays_so() -> None:
    old = sealed_token(span(0, 0, 3), issued_at=NOW - TOKEN_LIFE_MS)
    merges = issuer()
    once = asyncio.run(merges.merge(ANYONE, [sealed_token(span(0, 3, 4)), old])).token
    twice = merge(once, sealed_token(span(0, 4, 5)))
    assert twice.lives_since == NOW - TOKEN_LIFE_MS
    assert twice.issued_at == NOW


def test_what_was_assumed_of_one_is_assumed_of_all() -> None:
    sure, assumed = sealed_token(span(0, 0, 1)), sealed_token(span(0, 1, 2), assumed=True)
    assert merge(sure, assumed).identity_assumed
    assert not merge(sure).identity_assumed


def test_tokens_are_opened_and_sealed_for_the_tenant_that_asks() -> None:
    merges, other = issuer(), replace(ANYONE, tenant="other")
    with pytest.raises(Refusal, match="no such token"):
        asyncio.run(merges.merge(other, [sealed_token(span(0, 0, 1))]))
    own = seal(unsealed(sealed_token(span(0, 0, 1))), RING, tenant="other", nonce=bytes(12))
    merged = asyncio.run(merges.merge(other, [own])).token
    assert open_token(merged, RING, tenant="other", now_ms=NOW).parts


def test_an_expired_token_is_named_by_its_place() -> None:
    old = sealed_token(span(0, 0, 3), issued_at=NOW - TOKEN_LIFE_MS - 1)
    refused = refusal(sealed_token(span(0, 0, 3)), old)
    assert refused.slug == "token_expired"
    assert refused.members["rejected"] == [{"index": 1, "reason": "expired"}]
    assert refusal("forged", old).slug == "token_not_found"


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.integers(0, 1),
                st.integers(0, 1),
                st.integers(0, 9),
                st.integers(1, 4),
            ),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_merge_covers_exactly_what_its_tokens_cover(
    drawn: list[list[tuple[int, int, int, int, int]]],
) -> None:
    tokens = [
        Token(
            issued_at=NOW,
            request_id="00" * 8,
            parts=tuple(
                Part(
                    pipeline_id=f"{number:016x}",
                    generation=generation,
                    spans=(
                        Span(topic_id=OLD_ID, partition=place, start=start, end=start + length),
                    ),
                )
                for number, generation, place, start, length in parts
            ),
        )
        for parts in drawn
    ]
    merged = merge_parts(tokens)
    assert covered(merged) == covered(part for token in tokens for part in token.parts)
    assert len({(part.pipeline_id, part.generation) for part in merged}) == len(merged)


def covered(parts: Iterable[Part]) -> Covered:
    return {
        (part.pipeline_id, part.generation, each.topic_id, each.partition, offset)
        for part in parts
        for each in part.spans
        for offset in range(each.start or 0, each.end)
    }
