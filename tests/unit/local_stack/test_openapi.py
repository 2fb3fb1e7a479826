"""One OpenAPI document out of two."""

from typing import Any

from waybill_local.openapi import merge


def make_document(path: str, method: str, **schemas: object) -> dict[str, Any]:
    reference = {"schema": {"$ref": f"#/components/schemas/{next(iter(schemas))}"}}
    answer = {"200": {"content": {"application/json": reference}}}
    return {
        "openapi": "3.1.0",
        "paths": {path: {method: {"responses": answer}}, "/healthz": {"get": {}}},
        "components": {"schemas": schemas},
    }


def reference_of(document: dict[str, Any], path: str, method: str) -> str:
    answer = document["paths"][path][method]["responses"]["200"]
    return str(answer["content"]["application/json"]["schema"]["$ref"])


def test_methods_of_one_path_come_together() -> None:
    merged = merge(
        {
            "status": make_document("/v1/x", "get", Answer={"type": "object"}),
            "ingress": make_document("/v1/x", "put", Answer={"type": "object"}),
        },
        "0.1.0",
    )
    assert set(merged["paths"]) == {"/v1/x"}
    assert set(merged["paths"]["/v1/x"]) == {"get", "put"}
    assert set(merged["components"]["schemas"]) == {"Answer"}


def test_schemas_of_one_name_and_two_meanings_stay_apart() -> None:
    merged = merge(
        {
            "ingress": make_document("/v1/x", "put", Answer={"type": "object"}),
            "status": make_document("/v1/x", "get", Answer={"type": "string"}),
        },
        "0.1.0",
    )
    schemas = merged["components"]["schemas"]
    assert schemas == {"Answer": {"type": "object"}, "status_Answer": {"type": "string"}}
    assert reference_of(merged, "/v1/x", "put").endswith("/Answer")
    assert reference_of(merged, "/v1/x", "get").endswith("/status_Answer")


def test_keys_that_operations_name_are_described_in_the_whole() -> None:
    scheme = {"api_key": {"type": "http", "scheme": "bearer"}}
    document = make_document("/v1/x", "put", Answer={"type": "object"})
    document["components"]["securitySchemes"] = scheme
    merged = merge({"ingress": document}, "0.1.0")
    assert merged["components"]["securitySchemes"] == scheme
