"""What a key is, and whose."""

import pytest

from waybill_ingress.core.keys import keyed_request, read_key
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug


def test_keys_of_different_callers_never_meet() -> None:
    def who(tenant: str, key_id: str | None, key: str) -> str:
        caller = Caller(tenant=tenant, scopes=frozenset(), key_id=key_id)
        return keyed_request(
            caller, key, method="POST", path="/", query="", media_type="", digest=""
        ).who

    found = [
        who("t", "a", "k"), who("t", "b", "k"), who("u", "a", "k"), who("t", None, "k"),
        who("t", "a", "kk"), who("ta", "", "k"), who("t", "ak", ""),
    ]  # fmt: skip
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([""], "is empty"),
        (["a" * 256], "has 256 characters"),
        (["a\x7f"], "not printable"),
        (["é"], "not printable"),
        (["a", "a"], "more than once"),
    ],
)
def test_a_key_that_is_none_is_named(given: list[str], said: str) -> None:
    with pytest.raises(Refusal, match=said) as caught:
        read_key(given)
    assert caught.value.slug is Slug.BAD_IDEMPOTENCY_KEY


def test_a_key_is_taken_as_it_is() -> None:
    assert read_key([]) is None
    assert read_key(["a" * 255]) == "a" * 255
    assert read_key(['"quoted key"']) == '"quoted key"'
    assert read_key([" key \t"]) == "key"
