"""What ingress says no to: a slug that never changes, and a text that says how to mend it."""

from waybill_shared.contract.errors import WaybillError


class Refusal(WaybillError):
    """A request that must be changed, or that comes too early (slugs are in `adapters/http`)."""

    def __init__(self, slug: str, detail: str, **members: object) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail
        self.members = members
