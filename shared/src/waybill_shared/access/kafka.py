"""Asks Kafka, when a process starts, whether the process may do there what it must.

What a person has to mend ends the process with a line each. A Kafka that does not answer does not:
services wait for it.
"""

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.grants import KafkaGrant, KafkaOperation, Resource, kafka_grants
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import SILENT, KafkaAdmin
from waybill_shared.kafka.cluster import KafkaCluster
from waybill_shared.kafka.errors import GRANT_HINT
from waybill_shared.kafka.topics import topic_problems

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S: Final = 5.0
LOOK_S: Final = 0.2
NOT_OF_WHAT_EXISTS: Final[frozenset[KafkaOperation]] = frozenset({"Create"})
# A broker that speaks otherwise than we do cuts us off, as one that is stopped does.
SILENCE_HINT: Final = (
    "see WAYBILL_KAFKA; and WAYBILL_KAFKA_SECURITY_PROTOCOL, if the cluster wants TLS or a login"
)
REFUSALS: Final[Mapping[int, str]] = {
    KafkaError._AUTHENTICATION: (
        "see WAYBILL_KAFKA_SASL_USERNAME, _PASSWORD and _MECHANISM: the cluster must know this"
        " user with this password"
    ),
    KafkaError._SSL: (
        "see WAYBILL_KAFKA_SSL_CA_FILE: it must hold the authority of the brokers' certificates;"
        " they must be for the hosts that WAYBILL_KAFKA names, and speak TLS there"
    ),
}


def require_access(admin: KafkaAdmin, service: str, prefix: str) -> None:
    """Raise UserError if `service` lacks rights or topics; it names all that is missing.

    If Kafka does not answer, log a warning and go on.
    """
    if not connected(admin.cluster):
        return
    try:
        problems = [*_find_missing_rights(admin, service, prefix)]
        problems = problems or [*_topics(admin, service, prefix)]
    except Retryable as error:
        logger.warning("rights cannot be looked at now", extra={"reason": str(error)})
        return
    if problems:
        raise UserError(problems)


def connected(cluster: KafkaCluster) -> bool:
    """Return True if Kafka answers. Raise UserError if it refuses us, or if we do not trust it."""
    heard: list[KafkaError] = []
    options: dict[str, Any] = {"log_level": SILENT, "error_cb": heard.append}
    client = AdminClient({**cluster.client_options(), **options})
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            client.list_topics(timeout=LOOK_S)
        except KafkaException as error:
            client.poll(0)
            refused = next((each for each in heard if each.code() in REFUSALS), None)
            if refused is not None:
                message = f"kafka at {cluster.bootstrap}, as {cluster.user}: {refused.str()}"
                raise UserError(
                    [Problem(message=message, hint=REFUSALS[refused.code()])]
                ) from error
            if time.monotonic() > deadline:
                reason = heard[-1].str() if heard else error.args[0].str()
                logger.warning(
                    "kafka does not answer", extra={"reason": reason, "hint": SILENCE_HINT}
                )
                return False
        else:
            return True


def lacking(
    admin: KafkaAdmin, resource: Resource, wanted: Mapping[str, Collection[KafkaOperation]]
) -> Iterator[Problem]:
    """Yield a problem for each name on which this user lacks some of the `wanted` operations.

    What does not exist yet is skipped.
    """
    allowed = admin.operations(resource, wanted)
    for name, operations in wanted.items():
        may = allowed.get(name)
        missing = [each for each in operations if may is not None and each not in may]
        if missing:
            message = f"{admin.cluster.user} lacks {' and '.join(missing)} on {resource} {name}"
            yield Problem(message=f"{message} in Kafka", hint=GRANT_HINT)


def uncreatable(admin: KafkaAdmin, topics: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each of `topics` that does not exist and that this user may not
    create.
    """
    wanted = set(topics)
    for name in admin.forbidden(wanted - admin.identify(wanted).keys()):
        message = f"there is no topic {name}, and {admin.cluster.user} lacks Create on it in Kafka"
        yield Problem(message=message, hint=f"create the topic; or {GRANT_HINT}")


def _find_missing_rights(admin: KafkaAdmin, service: str, prefix: str) -> Iterator[Problem]:
    """Yield what is missing of the rights on our topics and groups.

    Rights on transactional ids are not checked: Kafka reports only who uses them.
    """
    wanted: dict[Resource, dict[str, set[KafkaOperation]]] = {"topic": {}, "group": {}}
    for grant in kafka_grants(service, prefix):
        for name in _names(grant, prefix):
            operations = wanted[grant.resource].setdefault(name, set())
            operations.update(set(grant.operations) - NOT_OF_WHAT_EXISTS)
    for resource, rights in wanted.items():
        sorted_rights = {name: sorted(operations) for name, operations in rights.items()}
        yield from lacking(admin, resource, sorted_rights)


def _names(grant: KafkaGrant, prefix: str) -> list[str]:
    if grant.need != "always" or grant.resource == "transactional-id":
        return []
    if not grant.prefixed:
        return [grant.name]
    return [f"{prefix}.{spec.name}" for spec in topic_specs()]


def _topics(admin: KafkaAdmin, service: str, prefix: str) -> Iterator[Problem]:
    """Check all topics of ours, if the service may see how they are configured."""
    if any("DescribeConfigs" in grant.operations for grant in kafka_grants(service, prefix)):
        yield from topic_problems(admin, prefix)
