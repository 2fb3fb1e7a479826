"""The table of grants as commands to run: for Kafka's `kafka-acls.sh`, and for `valkey-cli`."""

import shlex
from collections.abc import Iterable, Iterator

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.grants import (
    KAFKA_GRANTS,
    PREFIX,
    REDIS_GRANTS,
    KafkaGrant,
    PipelineTopics,
    kafka_grants,
)

ADMIN = "--command-config admin.properties"


def acl_commands(bootstrap: str, prefix: str, user: str, topics: PipelineTopics) -> Iterator[str]:
    """Yield the commands that grant each service its rights, in Kafka and in Redis.

    `user` names the user of a service, with `{service}` in it.
    """
    _refuse_patterns_of_ours(prefix, topics)
    yield "# Kafka: with admin.properties of somebody who may alter ACLs of the cluster."
    for service in KAFKA_GRANTS:
        yield f"# {service}"
        head = f"kafka-acls.sh --bootstrap-server {bootstrap} {ADMIN} --add"
        principal = f"--allow-principal {shlex.quote(f'User:{_fill_in(user, service)}')}"
        for grant in kafka_grants(service, prefix, topics):
            yield f"{head} {principal} {_options(grant)}"
    yield "# Redis or Valkey: in valkey-cli; each user still needs a password: ACL SETUSER … >…"
    for service in REDIS_GRANTS:
        yield f"ACL SETUSER {_fill_in(user, service)} {redis_rules(service, prefix)}"


def redis_rules(service: str, prefix: str) -> str:
    grant = REDIS_GRANTS[service]
    keys, channel = (text.replace(PREFIX, prefix, 1) for text in (grant.keys, grant.channel))
    allowed = " ".join(f"+{command}" for command in grant.commands)
    return f"on resetkeys resetchannels -@all ~{keys} &{channel} {allowed}"


def _refuse_patterns_of_ours(prefix: str, topics: Iterable[str]) -> None:
    """Raise UserError for a topic or pattern that includes the commits topic.

    A user that may write records must not thereby write commits.
    """
    for topic in topics:
        own = f"{prefix}.commits"
        if topic == own or (topic.endswith("*") and own.startswith(topic[:-1])):
            message = f"{topic} also stands for {own}, which only the stage runner may write"
            hint = f"name topics, or beginnings of names, that are no part of {prefix}."
            raise UserError([Problem(message=message, hint=hint)])


def _fill_in(user: str, service: str) -> str:
    return user.replace("{service}", service)


def _options(grant: KafkaGrant) -> str:
    operations = " ".join(f"--operation {operation}" for operation in grant.operations)
    pattern = " --resource-pattern-type prefixed" if grant.prefixed else ""
    comment = "" if grant.need == "always" else f"  # only {grant.need}"
    return f"{operations} --{grant.resource} {shlex.quote(grant.name)}{pattern}{comment}"
