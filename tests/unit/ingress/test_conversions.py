"""A manifest made of SQL: it can be applied, and says what the SQL says."""

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.ingress.fakes import FakeKafka
from unit.ingress.in_memory import make_app
from waybill_ingress.adapters.http.manifest_models import ConversionAnswer, ConvertRequest
from waybill_ingress.core.conversions import manifest_of
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.reading import read_manifest

SQL = """\
create table VENDOR (
    id bigint not null primary key,
    name varchar,
    address varchar
);

create table unit_price (part bigint not null, "Unit price" decimal(12, 2));
"""


def test_each_table_is_an_input_and_has_a_stage() -> None:
    manifest = read_manifest(manifest_of(SQL, "supply-chain")).model
    assert manifest.name == "supply-chain"
    assert [(each.name, each.kafka.topic, each.key, each.columns) for each in manifest.inputs] == [
        ("vendor", "supply-chain.vendor", "id", "id BIGINT NOT NULL, name STRING, address STRING"),
        (
            "unit_price",
            "supply-chain.unit_price",
            None,
            "part BIGINT NOT NULL, `Unit price` DECIMAL(12,2)",
        ),
    ]
    assert [
        (stage.name, stage.inputs, stage.sinks[0].settings.target) for stage in manifest.stages
    ] == [
        ("load_vendor", ("vendor",), "lakehouse.supply_chain.vendor"),
        ("load_unit_price", ("unit_price",), "lakehouse.supply_chain.unit_price"),
    ]


def test_the_sql_stands_in_it_as_it_was_written() -> None:
    text = manifest_of(SQL, "shop")
    assert "      create table VENDOR (\n          id bigint not null primary key,\n" in text


def test_a_name_that_yaml_does_not_keep_is_refused() -> None:
    with pytest.raises(UserError, match="YAML"):
        manifest_of('CREATE TABLE t ("a\u2028 b" INT)', "shop")
    with pytest.raises(UserError, match="not YAML"):
        manifest_of("CREATE TABLE t (a INT /* \x07 */)", "shop")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE a (x INT); CREATE TABLE a_rows (x INT)",
        'CREATE TABLE "a-b" (x INT); CREATE TABLE a_b (y STRING)',
        "CREATE TABLE null (x INT); CREATE TABLE true (x INT)",
        f"CREATE TABLE {'a' * 63} (x INT); CREATE TABLE {'a' * 62} (x INT)",
        "\ufeffCREATE TABLE t (a INT NOT NULL, -- x\r PRIMARY KEY (a),\r\n b INT)",
    ],
)
def test_all_that_is_made_has_a_name_of_its_own(sql: str) -> None:
    manifest = read_manifest(manifest_of(sql, "on")).model
    targets = [stage.sinks[0].settings.target for stage in manifest.stages]
    assert len({*targets}) == len(targets) == len(manifest.inputs)


def test_more_tables_than_a_pipeline_has_inputs() -> None:
    sql = "".join(f"CREATE TABLE t{number} (a INT);\n" for number in range(65))
    with pytest.raises(UserError, match="these are 65 tables"):
        manifest_of(sql, "shop")


@pytest.fixture
def client() -> TestClient:
    return local_client(make_app(FakeKafka()), raise_server_exceptions=False)


def test_over_http_it_is_a_text(client: TestClient) -> None:
    answer = client.post("/v1/convert", json={"name": "shop", "sql": SQL})
    assert answer.json() == {"manifest": manifest_of(SQL, "shop")}


def test_what_is_refused_has_its_line_and_column(client: TestClient) -> None:
    answer = client.post(
        "/v1/convert", json={"name": "shop", "sql": "CREATE TABLE t (\n  a INT LATENESS 5)"}
    )
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["line"], error["column"]) == (422, 2, 9)
    assert error["message"].startswith("LATENESS is not accepted: ")


def test_a_pipeline_has_a_name_that_it_can_have(client: TestClient) -> None:
    answer = client.post("/v1/convert", json={"name": "My Shop", "sql": SQL})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "name")


def test_examples_are_of_their_models() -> None:
    for model in (ConvertRequest, ConversionAnswer):
        extra = model.model_config["json_schema_extra"]
        assert isinstance(extra, dict)
        assert model.model_validate(extra["example"])


def test_what_has_no_effect_is_kept_and_warned_of(client: TestClient) -> None:
    """As the tables of Feldera's tutorial have it."""
    sql = "CREATE TABLE vendor (id BIGINT) WITH ('materialized' = 'true');"
    manifest = client.post("/v1/convert", json={"name": "shop", "sql": sql}).json()["manifest"]
    (warning,) = read_manifest(manifest).model.warnings()
    assert "WITH ('materialized') has no effect" in warning
