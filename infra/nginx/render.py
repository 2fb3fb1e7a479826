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

# $waybill_service and $waybill_methods look at the path as it was sent, as the local gateway does.
TEMPLATE: Final = """\
# Made by `python -m infra.nginx.render` from waybill_shared.contract.routes: change that.

map "$request_method $request_uri" $waybill_service {
    default "";
@services@
}

map $request_uri $waybill_methods {
    default "";
@methods@
}

map $waybill_service $waybill_address {
    default "";
@addresses@
}

# The services' own pages for operators: /metrics/status and the like.
map $uri $waybill_operated {
    volatile;  # a request for all of them looks here once for each
    default "";
@operated@
}

map $http_x_request_id $waybill_request_id {
    default $request_id;
    "~^[A-Za-z0-9._:-]{1,128}$" $http_x_request_id;
}

server {
    listen @listen@;
    server_tokens off;
    access_log off;  # addresses hold tokens
    resolver @resolver@ valid=5s;

    # Bodies and event streams flow through as they come; the services have limits of their own.
    client_max_body_size 0;
    proxy_request_buffering off;
    proxy_buffering off;
    proxy_http_version 1.1;
    # Longer than any long poll may last, and than the pause between two pings of a stream.
    proxy_read_timeout 120s;
    proxy_connect_timeout 5s;
    proxy_next_upstream off;  # a write is never sent twice
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_set_header X-Request-Id $waybill_request_id;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Host $http_host;

    default_type application/problem+json;
    error_page 404 @not_found;
    error_page 405 @method_not_allowed;
    error_page 501 @not_implemented;
    error_page 502 @service_unreachable;
    error_page 504 @service_timeout;

    location / {
        if ($waybill_methods = "") {
            return 404;
        }
        if ($waybill_service = "") {
            return 405;
        }
        proxy_pass http://$waybill_address;
    }

    # Clients of Feldera write again what is answered 502 or 504.
    location ~ "^@foreign_writes@$" {
        if ($waybill_service = "") {
            return 501;
        }
        error_page 501 @not_implemented;
        error_page 502 504 =500 @written_perhaps;
        proxy_pass http://$waybill_address;
    }

    # What else clients of Feldera ask for.
    location @foreign@ {
        if ($waybill_service = "") {
            return 501;
        }
        proxy_pass http://$waybill_address;
    }

    location = @asyncapi@ {
        set $waybill_describes @status@;
        proxy_pass http://$waybill_describes;
    }

    location = /healthz {
        default_type application/json;
        return 200 '{"alive": true}';
    }

    # Ready when every service is. They are asked one after the other, which decides the status;
    # the body includes what each says.
@ready@

    location @ready {
        default_type application/json;
        ssi on;
        ssi_types application/json;
        return 200 '@readiness@';
    }

    location @not_ready {
        default_type application/json;
        ssi on;
        ssi_types application/json;
        return 503 '@readiness@';
    }

    location = /version {
        default_type application/json;
        ssi on;
        ssi_types application/json;
        return 200 '@version@';
    }

    location ~ ^@operations@ {
        if ($waybill_operated = "") {
            return 404;
        }
        proxy_pass http://$waybill_operated;
    }

    location @not_found {
        add_header X-Request-Id $waybill_request_id always;
        return 404 '@problem_404@';
    }

    location @method_not_allowed {
        add_header Allow $waybill_methods always;
        add_header X-Request-Id $waybill_request_id always;
        return 405 '@problem_405@';
    }

    location @not_implemented {
        default_type application/json;
        add_header X-Request-Id $waybill_request_id always;
        return 501 '@not_implemented@';
    }

    location @written_perhaps {
        default_type application/json;
        add_header X-Request-Id $waybill_request_id always;
        return 500 '@written_perhaps@';
    }

    location @service_unreachable {
        add_header X-Request-Id $waybill_request_id always;
        return 502 '@problem_502@';
    }

    location @service_timeout {
        add_header X-Request-Id $waybill_request_id always;
        return 504 '@problem_504@';
    }
}
"""


def render(addresses: Mapping[str, str], *, listen: str, resolver: str) -> str:
    """The configuration for services at `addresses`."""
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
    return re.sub(r"@(\w+)@", lambda found: filled.get(found[1], found[0]), TEMPLATE)


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
