"""Writes `gateway.conf`, nginx in front of the services, from the route table in `shared`.

`python -m infra.nginx.render` does it; a test holds the committed file to the table. Which paths
and methods there are is known to the table alone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug, problem_body
from waybill_shared.contract.routes import (
    FORWARDED,
    HTTP_SERVICES,
    OPERATIONS,
    SERVICES,
    VARIABLE,
    methods_of,
    route_for,
)
from waybill_shared.contract.version import VERSION
from waybill_shared.http import asyncapi, feldera

CONFIG: Final = Path(__file__).with_name("gateway.conf")
ADDRESSES: Final = {
    "ingress": "ingress:8081",
    "status": "status:8082",
    "token_tracker": "token_tracker:8083",
    "stage_runner": "stage_runner:8084",
}
LISTEN: Final = "8080"
OPENAPI: Final = "/openapi.json"
DETAILS: Final = {
    Slug.NOT_FOUND: "nothing at this path",
    Slug.METHOD_NOT_ALLOWED: "this path takes $waybill_methods",
    Slug.SERVICE_UNREACHABLE: "a service is not reachable",
    Slug.SERVICE_TIMEOUT: "a service did not answer in time",
}
RESOLVER: Final = "127.0.0.11"  # Docker's: asked again, so that a service may get a new address

TEMPLATE: Final = CONFIG.with_suffix(".conf.in")
"""The configuration, with `@name@` where a part from the table goes. Its $waybill_service and
$waybill_methods look at the path as it was sent, as the local gateway does.
"""


def render(addresses: Mapping[str, str], *, listen: str, resolver: str) -> str:
    """The configuration for services at `addresses`."""
    template = TEMPLATE.read_text(encoding="utf-8")
    filled = {
        "listen": listen,
        "resolver": resolver,
        "services": _map(_services()),
        "methods": _map((f'"~^{_path(path)}"', f'"{names}"') for path, names in _by_path()),
        "addresses": _map((name, addresses[name]) for name in HTTP_SERVICES),
        "operated": _map(
            (f"{page}/{name}", f"{addresses[name]}{page}")
            for name in addresses
            for page in _pages(name)
        ),
        "asyncapi": asyncapi.PATH,
        "status": addresses["status"],
        "ready": "\n\n".join(_ready()),
        "readiness": _merge("/readyz"),
        "version": _version(),
        "foreign": feldera.PREFIX,
        "foreign_writes": feldera.WRITE.pattern,
        "not_implemented": _foreign(Slug.NOT_FOUND, ""),
        "written_perhaps": _foreign(
            Slug.WRITTEN_PERHAPS, "ingress did not answer: the records may be written"
        ),
        "operations": f"({'|'.join(map(re.escape, (*OPERATIONS, OPENAPI)))})/",
        **{f"problem_{slug.status}": _problem(slug, detail) for slug, detail in DETAILS.items()},
    }
    return re.sub(r"@(\w+)@", lambda found: filled.get(found[1], found[0]), template)


def _pages(service: str) -> tuple[str, ...]:
    return (*OPERATIONS, OPENAPI) if service in HTTP_SERVICES else tuple(OPERATIONS)


def _map(lines: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"    {key} {value};" for key, value in lines)


def _methods(method: str) -> str:
    return "(GET|HEAD)" if method == "GET" else method


def _path(template: str) -> str:
    """A variable is one segment; behind the path comes its end or a query."""
    fixed = map(re.escape, VARIABLE.split(template))
    return "[^/?]+".join(fixed) + r"(\?|$)"


def _services() -> Iterator[tuple[str, str]]:
    for route in FORWARDED:
        yield f'"~^{_methods(route.method)} {_path(route.path)}"', route.service
    for path, _ in _by_path():
        any_of_it = route_for("OPTIONS", path)
        assert any_of_it is not None
        yield f'"~^OPTIONS {_path(path)}"', any_of_it.service


def _ready() -> Iterator[str]:
    """One location per service: where it is ready, on to the next one."""
    names = ["= /readyz", *(f"@ready_{service}" for service in SERVICES[1:]), "@ready"]
    for service, name, then in zip(SERVICES, names, names[1:], strict=False):
        yield f"""\
    location {name} {{
        auth_request /readyz/{service};
        error_page 500 = @not_ready;
        try_files /- {then};
    }}"""


def _merge(page: str) -> str:
    """A JSON object of what every service answers at `page`."""
    answers = (f'"{name}": <!--# include virtual="{page}/{name}" -->' for name in SERVICES)
    return f"{{{', '.join(answers)}}}"


def _version() -> str:
    mine = f'"service": "gateway", "version": "{VERSION}"'
    return f'{{{mine}, "services": {_merge("/version")}}}'


def _by_path() -> Iterator[tuple[str, str]]:
    """Each path with its methods; those without variables first, since the first that fits wins."""
    paths = dict.fromkeys(route.path for route in FORWARDED)
    for path in sorted(paths, key=lambda path: path.count("{")):
        yield path, ", ".join(methods_of(path))


def _problem(slug: Slug, detail: str) -> str:
    return json.dumps(problem_body(Refusal(slug, detail), request_id="$waybill_request_id"))


def _foreign(slug: Slug, detail: str) -> str:
    refusal = Refusal(slug, detail)
    body = feldera.error_body(refusal, path="this route", request_id="$waybill_request_id")
    return json.dumps(body)


def main() -> None:
    CONFIG.write_text(render(ADDRESSES, listen=LISTEN, resolver=RESOLVER), encoding="utf-8")


if __name__ == "__main__":
    main()
