"""An existing Redis or Valkey as a value, and the clients of it. Nobody else makes one.

The library is imported on use: it takes 0.3 s, and all services read these settings, but only two
have a client.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis
    import redis.asyncio


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServer:
    """`authorities` are the certificates trusted, as PEM; without them the machine's own."""

    url: str = field(repr=False)
    authorities: str | None = field(default=None, repr=False)

    @property
    def encrypted(self) -> bool:
        """Raises ValueError when the URL is none, and that error may hold part of a password."""
        from redis.connection import SSLConnection

        return self._parse().get("connection_class") is SSLConnection

    @property
    def user(self) -> str:
        return self._parse().get("username") or "default"

    def client(self, *, timeout_s: float) -> "redis.Redis":
        import redis

        return redis.Redis.from_url(self.url, **self._options(timeout_s))

    def async_client(self, *, timeout_s: float) -> "redis.asyncio.Redis":
        import redis.asyncio

        return redis.asyncio.Redis.from_url(self.url, **self._options(timeout_s))

    def _parse(self) -> dict[str, Any]:
        from redis.connection import parse_url

        return dict(parse_url(self.url))  # type: ignore[no-untyped-call]

    def _options(self, timeout_s: float) -> dict[str, Any]:
        options: dict[str, Any] = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
        }
        if self.authorities is not None:
            options["ssl_ca_data"] = self.authorities
        return options
