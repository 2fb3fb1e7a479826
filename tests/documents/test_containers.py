"""Dockerfile, compose file and .env.example say what the services' settings and routes say."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from infra.nginx.render import ADDRESSES, CONFIG, LISTEN
from waybill_ingress.settings import Settings as IngressSettings
from waybill_local.broker import Broker, properties
from waybill_local.jars import KAFKA, jar_set
from waybill_local.java import Java
from waybill_local.services import SERVICES as LOCAL
from waybill_shared.contract.routes import OPERATIONS, SERVICES
from waybill_shared.settings.redis import RedisSettings
from waybill_shared.settings.service import ServiceSettings
from waybill_shared.setup import SetupSettings
from waybill_stage_runner.settings import Settings as StageRunnerSettings
from waybill_status.settings import Settings as StatusSettings
from waybill_token_tracker.settings import Settings as TokenTrackerSettings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STAGES = dict(re.findall(r"FROM \S+ AS (\w+)\n(.*?)(?=\nFROM )", DOCKERFILE, re.DOTALL))
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: Mapping[str, Any] = YAML(typ="safe", pure=True).load(COMPOSE_TEXT)
CONTAINERS: Mapping[str, Any] = COMPOSE["services"]
SETTINGS: Mapping[str, type[ServiceSettings]] = {
    "ingress": IngressSettings,
    "token_tracker": TokenTrackerSettings,
    "stage_runner": StageRunnerSettings,
    "status": StatusSettings,
    "setup": SetupSettings,
}
OURS = tuple(SETTINGS)
VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}")
PROBE = re.compile(r"http://127\.0\.0\.1:(\d+)(/\w+)")


def example() -> dict[str, str]:
    """The variables of .env.example."""
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def filled(text: str) -> str:
    return VARIABLE.sub(lambda found: example()[found[1]], text)


def settings_of(name: str) -> ServiceSettings:
    """Read them as the container does: from the image, and compose over it. What all services
    share may be a setting of some of them only."""
    given = {**image_environment(name), **CONTAINERS[name]["environment"]}
    fields = SETTINGS[name].model_fields
    named = {setting(variable): value for variable, value in given.items()}
    of_some = {field for each in SETTINGS.values() for field in each.model_fields}
    shared = {setting(variable) for variable in COMPOSE["x-settings"]} & of_some
    assert named.keys() <= fields.keys() | shared, f"{name} has no such setting"
    return SETTINGS[name].model_validate({key: filled(value) for key, value in named.items()})


def setting(variable: str) -> str:
    return variable.removeprefix("WAYBILL_").lower()


def image_environment(name: str) -> dict[str, str]:
    return dict(re.findall(r"\b(WAYBILL_\w+)=(\S+)", STAGES[CONTAINERS[name]["build"]["target"]]))


def mounts(name: str) -> Iterator[tuple[str, str]]:
    for mount in CONTAINERS[name].get("volumes", []):
        source, target, *_ = mount.split(":")
        yield source, target


def test_every_service_has_a_container_and_a_build_of_its_own() -> None:
    assert {*SERVICES, "setup", "kafka", "valkey", "gateway"} == set(CONTAINERS)
    for service in SERVICES:
        assert CONTAINERS[service]["build"]["args"]["SERVICE"] == service
    assert {CONTAINERS[name]["build"]["target"] for name in OURS} <= STAGES.keys()


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting_with_a_value_it_takes(name: str) -> None:
    settings = settings_of(name)
    assert settings.kafka == "kafka:9092"
    if isinstance(settings, RedisSettings):
        assert settings.redis.startswith("redis://valkey:6379/")
    assert settings.host == "0.0.0.0"


@pytest.mark.parametrize("name", OURS)
def test_all_share_one_environment(name: str) -> None:
    assert COMPOSE["x-settings"].items() <= CONTAINERS[name]["environment"].items()


def test_every_variable_of_compose_is_in_the_example_with_the_same_default() -> None:
    used = dict(VARIABLE.findall(COMPOSE_TEXT))
    assert used == example()


def test_what_a_service_keeps_lies_in_a_named_volume() -> None:
    for name in OURS:
        targets = {target for source, target in mounts(name) if source in COMPOSE["volumes"]}
        settings = settings_of(name)
        kept = [settings.token_keys_file.parent]
        assert settings.api_keys_file is not None
        kept.append(settings.api_keys_file.parent)
        if isinstance(settings, StageRunnerSettings):
            kept += [settings.stage_runner_state_folder, settings.stage_runner_lakehouse]
            kept.append(settings.stage_runner_spark_archives.parent)
        assert {str(folder) for folder in kept} <= targets, name
        for folder in targets:
            assert folder in DOCKERFILE, "a volume takes its owner from the image's folder"
    used = {source for name in CONTAINERS for source, _ in mounts(name) if source[0] != "."}
    assert used == set(COMPOSE["volumes"])


@pytest.mark.parametrize("service", SERVICES)
def test_health_check_asks_the_services_own_port_for_a_page_without_a_key(service: str) -> None:
    found = PROBE.search(" ".join(CONTAINERS[service]["healthcheck"]["test"]))
    assert found is not None
    port = getattr(settings_of(service), f"{service}_port")
    assert (int(found[1]), OPERATIONS[found[2]]) == (port, None)
    assert ADDRESSES[service] == f"{service}:{port}"


def test_gateway_is_the_generated_one_and_the_only_door() -> None:
    gateway = CONTAINERS["gateway"]
    assert f"./{CONFIG.relative_to(ROOT)}" in [source for source, _ in mounts("gateway")]
    assert [filled(port) for port in gateway["ports"]] == [f"127.0.0.1:8080:{LISTEN}"]
    found = PROBE.search(" ".join(gateway["healthcheck"]["test"]))
    assert found is not None
    assert (found[1], found[2] in OPERATIONS) == (LISTEN, True)
    published = {name for name, container in CONTAINERS.items() if "ports" in container}
    assert published == {"gateway", "kafka"}
    for name in published:
        assert all(port.startswith("${PUBLISH_ADDRESS") for port in CONTAINERS[name]["ports"])


def test_nobody_waits_for_what_is_not_checked() -> None:
    for name, container in CONTAINERS.items():
        for other, wanted in container.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in CONTAINERS[other], (name, other)
            else:
                assert other == "setup"
    for service in SERVICES:
        assert "setup" in CONTAINERS[service]["depends_on"]


def test_containers_are_given_the_time_that_services_need_to_stop() -> None:
    needed = {service.name: service.stop_timeout_s for service in LOCAL}
    for service in SERVICES:
        grace = CONTAINERS[service]["stop_grace_period"]
        assert int(grace.removesuffix("s")) >= needed[service], service


def test_services_run_without_rights() -> None:
    for name in OURS:
        assert CONTAINERS[name]["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in CONTAINERS[name]["security_opt"]
    for stage in ("service", "stage_runner"):
        assert re.findall(r"^USER (\w+)$", STAGES[stage], re.MULTILINE)[-1] == "waybill"


def test_kafka_is_the_version_and_configuration_of_the_local_stack(tmp_path: Path) -> None:
    java = Java(path=tmp_path, version="17", bundled=False)
    local = Broker(java=java, jars=jar_set(KAFKA), folder=tmp_path, port=9092, controller_port=9093)
    kafka = CONTAINERS["kafka"]
    assert kafka["image"] == f"apache/kafka:{local.version}"
    here = dict(line.split("=", 1) for line in properties(local).splitlines())
    there = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in kafka["environment"].items()
    }
    assert there.keys() <= here.keys()
    places = re.compile("listeners|voters|protocol|dirs")
    for name, value in there.items():
        if not places.search(name):
            assert value == here[name], name


def test_what_wheels_are_built_of_goes_into_the_build() -> None:
    """Members, and the folders that links in them lead to."""
    let_in = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    members = tomllib.loads(text)["tool"]["uv"]["workspace"]["members"]
    links = [
        path for each in members for path in ROOT.glob(f"{each}/src/**/*") if path.is_symlink()
    ]
    needed = {member.removesuffix("/*") for member in members}
    needed |= {path.resolve().relative_to(ROOT).parts[0] for path in links}
    assert needed <= let_in
