"""`waybill init` writes a manifest that is good as it is, and writes over nothing."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from unit.waybill.conftest import Command
from waybill.first_manifest import NAME, NAME_IN_WORDS, SCHEMA, FirstManifest, name_for
from waybill.proposals import Proposal
from waybill.testing import Response, ScriptedServer, problem
from waybill_shared.contract.manifest.fields import IN_WORDS, NAME_PATTERN
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest

FOUND = {
    "topic": "shop.clicks",
    "records": 7,
    "schema": 'id BIGINT, `a "b": é` STRING, s STRUCT<x: DATE>',
    "notes": ["x: STRING, for no record has a value of it"],
}


def good(text: str) -> Manifest:
    return read_manifest(text, reserved="waybill").model


def test_the_file_is_a_good_manifest_with_what_is_next(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    result = command("init", "orders")
    assert (result.exit_code, result.stdout) == (0, "orders.yaml is written\n")
    text = (tmp_path / "orders.yaml").read_text()
    manifest = good(text)
    (stage,) = manifest.stages
    assert (manifest.name, manifest.inputs[0].columns) == ("orders", SCHEMA)
    assert stage.steps and [sink.kind for sink in stage.sinks] == ["kafka"]
    for told in ("waybill check -f orders.yaml", "waybill apply -f orders.yaml && waybill wait"):
        assert told in text and told in result.stderr
    assert server.requests == []


def test_the_iceberg_sink_of_the_comment_is_good_too(command: Command) -> None:
    text = command("init", "my-orders", "-f", "-").stdout
    manifest = good(text.replace("      # - {name: lake", "      - {name: lake"))
    assert [sink.kind for sink in manifest.stages[0].sinks] == ["kafka", "iceberg"]


def test_the_record_to_try_it_with_fits_its_columns() -> None:
    found = YAML(typ="safe", pure=True).load(FirstManifest(name="a", file="a.yaml").text)
    assert found["inputs"][0]["key"] == "order_id"
    assert 'waybill send a records \'{"order_id": 1' in FirstManifest(name="a", file="b").text


def test_a_file_that_exists_is_left_as_it_is(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "orders.yaml").write_text("mine")
    result = command("init", "orders", "--from", "orders.in")
    assert result.exit_code == 2
    assert "orders.yaml exists and was left as it is" in " ".join(result.stderr.split())
    assert (tmp_path / "orders.yaml").read_text() == "mine"
    assert server.requests == []


def test_another_file_is_named_in_the_commands(command: Command, tmp_path: Path) -> None:
    assert command("init", "orders", "-f", "my file.yaml").exit_code == 0
    text = (tmp_path / "my file.yaml").read_text()
    assert "waybill check -f 'my file.yaml'" in text


def test_file_in_a_folder_that_is_not_there_is_a_usage_error(command: Command) -> None:
    result = command("init", "orders", "-f", "no/orders.yaml")
    assert result.exit_code == 2
    assert "cannot write no/orders.yaml" in " ".join(result.stderr.split())


def test_stdout_gets_the_manifest_alone(command: Command, tmp_path: Path) -> None:
    result = command("init", "orders", "-f", "-")
    assert good(result.stdout).name == "orders"
    assert (result.stderr, list(tmp_path.iterdir())) == ("", [])


def test_as_json_it_is_an_object(command: Command) -> None:
    told = json.loads(command("init", "orders", "-o", "json").stdout)
    assert (told["name"], told["file"], told["notes"]) == ("orders", "orders.yaml", [])
    assert good(told["manifest"]).name == "orders"


@pytest.mark.parametrize("name", ["Orders", "1st", "a b", "", "a" * 64])
def test_wrong_name_is_a_usage_error(command: Command, name: str, tmp_path: Path) -> None:
    result = command("init", name)
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("orders", "orders"),
        ("My Shop", "my-shop"),
        ("2024-été", "t"),
        ("...", "orders"),
        ("", "orders"),
        ("waybill", "orders"),
        ("x" * 99, "x" * 63),
    ],
)
def test_name_is_made_of_the_folders(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, name: str
) -> None:
    assert name_for(folder) == name
    assert good(FirstManifest(name=name, file="f").text).name == name


def test_without_a_name_the_folder_gives_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Web Shop").mkdir()
    monkeypatch.chdir(tmp_path / "Web Shop")
    assert command("init").stdout == "web-shop.yaml is written\n"


def test_names_are_those_that_manifests_take() -> None:
    assert f"^{NAME.pattern}$" == NAME_PATTERN
    assert IN_WORDS[NAME_PATTERN] == NAME_IN_WORDS


def test_from_a_topic_it_has_the_columns_proposed(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    server.answer("POST", "/v1/propose", Response(json=FOUND))
    result = command("init", "clicks", "--from", "shop.clicks")
    assert result.exit_code == 0
    assert json.loads(server.requests[0].body) == {"topic": "shop.clicks"}
    text = (tmp_path / "clicks.yaml").read_text()
    (source,) = good(text).inputs
    assert (source.columns, source.kafka.topic) == (FOUND["schema"], "shop.clicks")
    assert "# - x: STRING, for no record has a value of it" in text
    assert "note: x: STRING, for no record has a value of it" in result.stderr
    assert "waybill token wait $(waybill token for clicks records)" in text


def test_a_note_never_leaves_its_comment() -> None:
    proposal = Proposal(topic="t", records=1, schema="a INT", notes=("x\nname: other",))
    assert good(FirstManifest(name="mine", file="f", proposal=proposal).text).name == "mine"


@pytest.mark.parametrize("topic", ["clicks.out", "clicks.in"])
def test_a_topic_is_never_input_and_sink(topic: str) -> None:
    proposal = Proposal(topic=topic, records=1, schema="a INT")
    assert good(FirstManifest(name="clicks", file="f", proposal=proposal).text)


def test_a_pipeline_called_waybill_has_no_topics_of_waybills_own() -> None:
    assert good(FirstManifest(name="waybill", file="f").text).name == "waybill"


def test_topic_that_is_not_there_writes_nothing(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    server.answer("POST", "/v1/propose", problem(404, "there is no topic t", hint="look again"))
    result = command("init", "clicks", "--from", "t")
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert result.stderr == "error: there is no topic t\nhint: look again\n"
