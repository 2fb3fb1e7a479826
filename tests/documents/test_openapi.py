"""The OpenAPI documents of the services: each operation with all its answers, problems as such."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from documents.test_scopes import routers
from local_client import local_client
from waybill_ingress.core.keys import HEADER
from waybill_shared.contract.problems import PROBLEM_JSON, Slug
from waybill_shared.contract.routes import HTTP_SERVICES
from waybill_shared.http.app import create_app
from waybill_shared.http.feldera import PREFIX, SCHEMA
from waybill_shared.http.openapi import SCHEMAS, refusals
from waybill_shared.process.health import Health

JsonObject = dict[str, Any]
OF_NO_OPERATION = {
    Slug.HTTP_ERROR,
    Slug.METHOD_NOT_ALLOWED,
    Slug.NOT_FOUND,
    Slug.SERVICE_TIMEOUT,
    Slug.SERVICE_UNREACHABLE,
}
"""What is answered where there is no operation, or by a gateway."""
NO_MEMBER = {"wait", "atomic", "unknown"}


def make_app(service: str) -> FastAPI:
    return create_app(service, routers(service), Health())


def operations() -> Iterator[tuple[str, JsonObject]]:
    for service in HTTP_SERVICES:
        for path, methods in make_app(service).openapi()["paths"].items():
            for method, operation in methods.items():
                yield f"{service}: {method.upper()} {path}", operation


OPERATIONS = dict(operations())
FOREIGN = [name for name in OPERATIONS if f" {PREFIX}" in name]
OURS = [name for name in OPERATIONS if name not in FOREIGN]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_described(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]


@pytest.mark.parametrize("name", FOREIGN)
def test_each_refusal_at_v0_has_the_form_of_feldera(name: str) -> None:
    for status, answer in OPERATIONS[name]["responses"].items():
        if status >= "400":
            ((kind, content),) = answer["content"].items()
            assert (kind, content["schema"]) == ("application/json", SCHEMA)
            assert all(
                each["value"].keys() == SCHEMA["properties"].keys()
                for each in content["examples"].values()
            )


@pytest.mark.parametrize("name", OURS)
def test_each_refusal_is_a_problem_with_its_schema_and_examples(name: str) -> None:
    for status, answer in OPERATIONS[name]["responses"].items():
        if status < "400" or (name.endswith("/readyz") and status == "503"):
            assert PROBLEM_JSON not in answer.get("content", {})
            continue
        ((kind, content),) = answer["content"].items()
        assert (kind, content["schema"]) == (PROBLEM_JSON, {"$ref": "#/components/schemas/Problem"})
        for slug, example in content["examples"].items():
            assert str(example["value"]["status"]) == status
            assert example["value"]["type"] == f"urn:waybill:problem:{slug}"


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_read_may_be_refused(name: str) -> None:
    operation = OPERATIONS[name]
    answers = operation["responses"].keys()
    assert "500" in answers
    assert ("401" in answers, "403" in answers) == (("security" in operation),) * 2
    bodies = "requestBody" in operation
    invalid = "400" if name in FOREIGN else "422"
    assert not bodies or {"400", "413", invalid} <= answers
    assert bodies or not answers & {"413", "415"} or name.endswith("/{token}")
    asked = any(each["in"] == "query" for each in operation.get("parameters", ()))
    keyed = any(each["name"] == HEADER for each in operation.get("parameters", ()))
    assert (invalid in answers) == (bodies or asked or keyed)


def test_each_problem_is_one_of_an_operation() -> None:
    named = {
        slug
        for operation in OPERATIONS.values()
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
        for slug in content.get("examples", {})
        if slug in set(Slug)
    }
    assert named == set(Slug) - OF_NO_OPERATION


@pytest.mark.parametrize("slug", Slug)
def test_examples_have_the_members_that_the_meaning_names(slug: Slug) -> None:
    answer = refusals(slug)[slug.status]
    example = answer["content"][PROBLEM_JSON]["examples"][slug]["value"]
    members = set(re.findall(r"`([a-z_]+)`", slug.meaning)) - NO_MEMBER
    assert members <= example.keys()


@pytest.mark.parametrize("service", HTTP_SERVICES)
def test_schemas_are_those_that_are_used(service: str) -> None:
    document = make_app(service).openapi()
    used = re.findall(r"'\$ref': '(.*?)'", repr(document))
    assert set(used) == {f"{SCHEMAS}{name}" for name in document["components"]["schemas"]}


def test_the_root_of_ingress_leads_to_the_documentation() -> None:
    answer = local_client(make_app("ingress")).get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")
