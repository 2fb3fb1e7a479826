"""A server that webhooks are sent to, and one webhook that is sent there."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from unit.status.slots import RING
from watch_builders import make_delivery
from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.webhooks import Webhook, WebhookRules, seal_secret
from waybill_shared.http.names import HostNames
from waybill_shared.process.clock import SystemClock
from waybill_status.adapters.webhooks import Webhooks
from waybill_status.core.watches.deliveries import Answered

SECRET = bytes(range(32))
LOOPBACK = WebhookRules(allowed=allowed("127.0.0.0/8,::1"))
NOTHING = WebhookRules(allowed=allowed(""))
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Names(HostNames):
    """Gives what it is told, look by look; and what else the machine knows."""

    def __init__(self, *looks: str) -> None:
        super().__init__()
        self.looks = [*looks]

    async def find(self, host: str, port: int, timeout_s: float = 1.0) -> tuple[str, ...]:
        if host.endswith(".test"):
            return (self.looks.pop(0),)
        return await super().find(host, port, timeout_s)


@dataclass
class Server:
    """On loopback; says one thing to all, and remembers what it heard."""

    say: bytes | Callable[[asyncio.StreamWriter], Awaitable[None]] = OK
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    listeners: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            self.listeners.append(head + await reader.readexactly(size))
            if isinstance(self.say, bytes):
                writer.write(self.say)
            else:
                await self.say(writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def request(self) -> tuple[str, dict[str, str], str]:
        """The line, the headers by their names in small letters, and the body."""
        ((head, _, body),) = [each.partition(b"\r\n\r\n") for each in self.listeners]
        line, *headers = head.decode().split("\r\n")
        pairs = [each.partition(": ") for each in headers]
        return line, {name.lower(): value for name, _, value in pairs}, body.decode()


def delivery(url: str) -> WebhookDelivery:
    made = make_delivery()
    secret = seal_secret(SECRET, RING, watch=made.watch, nonce=bytes(12))
    return replace(made, webhook=Webhook(url=url, secret=secret))


def send(
    url: str,
    rules: WebhookRules = LOOPBACK,
    looked: HostNames | None = None,
    tls: ssl.SSLContext | None = None,
) -> Awaitable[Answered]:
    sender = Webhooks(RING, rules, looked or HostNames(), tls or ssl.create_default_context())
    asked = delivery(url)
    return sender.send(asked, asked.event, SystemClock().now_ms() // 1000)
