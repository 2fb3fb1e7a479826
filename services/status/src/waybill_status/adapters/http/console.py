"""Serves the console: one page at each of its addresses, and its files.

The path of a file has the hash of all files. So a browser keeps them for good and never mixes two
versions.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import PAGES

FILES: Final = "/console/{version}/{name}"
ADDRESSES: Final = tuple(page.path for page in PAGES if not page.path.startswith("/console"))
INDEX: Final = "index.html"
HASH: Final = b"{{hash}}"  # the page has this where the hash belongs
MODULES: Final = b"{{modules}}"  # and this where links to all belong: no module waits for another
TYPES: Final[Mapping[str, str]] = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
}
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
SECURITY: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """The files by name, and the hash of all of them."""

    files: Mapping[str, bytes]
    version: str

    @property
    def page(self) -> bytes:
        modules = [name for name in sorted(self.files) if name.endswith(".js")]
        link = '<link rel="modulepreload" href="/console/{{hash}}/%s">'
        links = "\n  ".join(link % name for name in modules).encode()
        return self.files[INDEX].replace(MODULES, links).replace(HASH, self.version.encode())


def read_console() -> Console:
    folder = files("waybill_status") / "console"
    found = {file.name: file.read_bytes() for file in folder.iterdir() if _kind(file.name) in TYPES}
    every = hashlib.sha256()
    for name, content in sorted(found.items()):
        every.update(b"%d %s %d\0%s" % (len(name), name.encode(), len(content), content))
    return Console(files=found, version=every.hexdigest()[:16])


def console_router() -> APIRouter:
    """Return the routes of the console. The page needs no key; its requests for data do."""
    router, console = APIRouter(include_in_schema=False), read_console()
    for path in ADDRESSES:
        router.add_route(path, _serve(console.page))
    router.add_route(FILES, _files(console))
    return router


def _serve(page: bytes) -> Callable[[Request], Awaitable[Response]]:
    headers = {**SECURITY, "Cache-Control": "no-cache"}

    async def serve(request: Request) -> Response:
        return Response(page, media_type=TYPES["html"], headers=headers)

    return serve


def _files(console: Console) -> Callable[[Request], Awaitable[Response]]:
    headers = {**SECURITY, "Cache-Control": "public, max-age=31536000, immutable"}

    async def serve(request: Request) -> Response:
        name = request.path_params["name"]
        content = console.files.get(name)
        if content is None or request.path_params["version"] != console.version:
            detail = f"the console has no file {name!r:.100}, or another version of it by now"
            raise Refusal(Slug.NOT_FOUND, detail, hint="load the page again")
        return Response(content, media_type=TYPES[_kind(name)], headers=headers)

    return serve


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
