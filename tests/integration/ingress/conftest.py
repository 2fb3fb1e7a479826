"""Two ingresses and a pipeline that both know; a module may have its own instead."""

from collections.abc import Iterator

import httpx2
import pytest

from integration.conftest import StartService, Surroundings
from integration.ingress.keyed import SETTINGS, WAIT_S
from integration.ingress.test_records import Known, make_pipeline
from waybill_shared.kafka.admin import KafkaAdmin, make_admin


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def other(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress)
