"""A Kafka with TLS, users and ACLs, and a Valkey with users behind TLS: as somebody else runs them.

Who may do what comes from `python -m waybill_shared.setup --print-acls`, word for word.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

import redis
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import PrivateFormat

from certificates import Authority, write
from e2e.existing_clusters.tls import tls_before
from waybill_local import broker, jars, valkey
from waybill_local.java import Java, find_java
from waybill_local.ports import address, pick
from waybill_local.processes import Child, ChildSpec, start, stop, wait_ready
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.cluster import KafkaCluster, Login

ADMIN = "admin"
TEAM = "orders-team"  # who sends straight to Kafka
SERVICES = ("setup", "ingress", "token_tracker", "stage_runner", "status")
ADMIN_PASSWORD = "of-the-admin"
MARK = "N0b0dy-sees-this"
TIMEOUT_S = 120.0
ANY_OPERATION = {name.replace("_", "").lower(): op for name, op in AclOperation.__members__.items()}
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}


def password_of(user: str) -> str:
    """One that a careless JAAS line, URL or shell would break on."""
    return f'{MARK} of "{user}"; \\ $HOME ${{x}} %41#@:/?'


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """Both clusters, and what a client of them needs."""

    kafka_address: str
    redis_port: int
    authority: Path
    folder: Path
    java: Java
    admin: KafkaAdmin
    spared: tuple[AclBinding, ...] = ()  # rights that Waybill can do without, not granted

    def kafka(self, user: str) -> KafkaCluster:
        return cluster(self.kafka_address, self.authority, user, password_of(user))

    def environment(self, service: str) -> dict[str, str]:
        """Of one service: everything by which it reaches the clusters, and its own user alone."""
        user = f"waybill-{service}"
        login = f"{quote(user, safe='')}:{quote(password_of(user), safe='')}"
        return {
            **os.environ,
            "WAYBILL_KAFKA": self.kafka_address,
            "WAYBILL_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "WAYBILL_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "WAYBILL_KAFKA_SASL_USERNAME": user,
            "WAYBILL_KAFKA_SASL_PASSWORD": password_of(user),
            "WAYBILL_KAFKA_SSL_CA_FILE": str(self.authority),
            "WAYBILL_REDIS": f"rediss://{login}@127.0.0.1:{self.redis_port}/0",
            "WAYBILL_REDIS_SSL_CA_FILE": str(self.authority),
            "WAYBILL_TOKEN_KEYS_FILE": str(self.folder / "keys.json"),
        }

    def run(
        self, module: str, *arguments: str, service: str, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """`python -m MODULE` as `service`, to its end."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env={**self.environment(service), **settings},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    @contextmanager
    def without(self, taken: AclBinding) -> Iterator[None]:
        client = self.admin.client
        for deleted in client.delete_acls([taken_filter(taken)]).values():
            assert deleted.result() == [taken]
        try:
            yield
        finally:
            grant(self.admin, [taken])


def cluster(bootstrap: str, authority: Path, user: str, password: str) -> KafkaCluster:
    return KafkaCluster(
        bootstrap=bootstrap,
        protocol="SASL_SSL",
        login=Login(mechanism="SCRAM-SHA-512", username=user, password=password),
        authorities=authority.read_text(),
    )


@contextmanager
def secured(folder: Path, *, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[Secured]:
    """Started, with the users and rights of every service, and of a team that writes `inputs`."""
    ours = Authority("the company's")
    authority = Path(write(folder / "authority.pem", ours.certificate))
    issued = ours.issue("the clusters")
    server = issued.key_pem(PrivateFormat.PKCS8) + issued.certificate
    keystore = Path(write(folder / "server.pem", server))
    ports = pick({"kafka": 0, "controller": 0, "valkey": 0})
    admin = make_admin(cluster(address(ports["kafka"]), authority, ADMIN, ADMIN_PASSWORD))
    java = find_java()
    specs = [
        _kafka(folder / "kafka", ports, keystore, java, admin),
        valkey.spec(folder / "valkey", ports["valkey"]),
    ]
    with ExitStack() as stack:
        started(specs, folder, stack)
        redis_port = stack.enter_context(tls_before(ports["valkey"], keystore))
        made = Secured(
            kafka_address=address(ports["kafka"]),
            redis_port=redis_port,
            authority=authority,
            folder=folder,
            java=java,
            admin=admin,
        )
        _add_users(admin)
        spared = _apply(made, ports["valkey"], inputs, outputs)
        yield replace(made, spared=spared)


def started(specs: Sequence[ChildSpec], folder: Path, stack: ExitStack) -> list[Child]:
    """Ready, and stopped with `stack`."""
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    children = [start(spec, logs) for spec in specs]
    stack.callback(
        partial(stop, children, forced=lambda: False, on_stopped=lambda child, graceful: None)
    )
    wait_ready(children, interrupted=lambda: False, on_ready=lambda child: None)
    return children


def grant(admin: KafkaAdmin, acls: Sequence[AclBinding]) -> None:
    for future in admin.client.create_acls(list(acls)).values():
        future.result()


def taken_filter(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _kafka(
    folder: Path, ports: dict[str, int], keystore: Path, java: Java, admin: KafkaAdmin
) -> ChildSpec:
    made = broker.Broker(
        java=java,
        jars=jars.jar_set(jars.KAFKA),
        folder=folder,
        port=ports["kafka"],
        controller_port=ports["controller"],
        settings={
            "listeners": f"SASL_SSL://{address(ports['kafka'])},"
            f"CONTROLLER://{address(ports['controller'])}",
            "advertised.listeners": f"SASL_SSL://{address(ports['kafka'])}",
            "inter.broker.listener.name": "SASL_SSL",
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": Login(
                mechanism="SCRAM-SHA-512", username=ADMIN, password=ADMIN_PASSWORD
            ).jaas(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": keystore,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": keystore.with_name("authority.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            # Nobody is anonymous but the one node to itself, on the controller's listener.
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
        },
        format_options=(
            "--add-scram",
            f"SCRAM-SHA-512=[name={ADMIN},password={ADMIN_PASSWORD}]",
        ),
    )
    return replace(broker.spec(made), wrong=admin.reachable)


def _add_users(admin: KafkaAdmin) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    users = [TEAM, *(f"waybill-{service}" for service in SERVICES)]
    wanted: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(u, info, password_of(u).encode()) for u in users
    ]
    for future in admin.client.alter_user_scram_credentials(wanted).values():
        future.result()


def _apply(
    made: Secured, valkey_port: int, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[AclBinding, ...]:
    """What `--print-acls` prints, and the team's own right to write; gives what it leaves out."""
    named = [*(f"--input={i}" for i in inputs), *(f"--output={o}" for o in outputs)]
    printed = made.run("waybill_shared.setup", "--print-acls", *named, service="setup")
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    kafka = [line for line in lines if line.startswith("kafka-acls.sh")]
    spared = [acl for line in kafka if "# only" in line for acl in _bindings(line)]
    acls = [acl for line in kafka if "# only" not in line for acl in _bindings(line)]
    team = f"kafka-acls.sh --add --allow-principal User:{TEAM} --operation Write"
    acls += [acl for topic in inputs for acl in _bindings(f"{team} --topic {topic}")]
    grant(made.admin, acls)
    with redis.Redis(port=valkey_port) as client:
        for line in [line for line in lines if line.startswith("ACL SETUSER")]:
            words = shlex.split(line)
            assert client.execute_command(*words, f">{password_of(words[2])}")
        client.execute_command("ACL", "SETUSER", "default", "off")
    return tuple(spared)


def _bindings(line: str) -> Iterator[AclBinding]:
    """What kafka-acls.sh makes of such a line."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap-server", "command-config", "allow-principal", *RESOURCES):
        parser.add_argument(f"--{name.replace('_', '-')}")
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--resource-pattern-type", default="literal")
    given = parser.parse_args(shlex.split(line, comments=True)[1:])
    ((kind, name),) = [(k, getattr(given, k)) for k in RESOURCES if getattr(given, k)]
    for operation in given.operation:
        yield AclBinding(
            RESOURCES[kind],
            name,
            ResourcePatternType[given.resource_pattern_type.upper()],
            given.allow_principal,
            "*",
            ANY_OPERATION[operation.lower()],
            AclPermissionType.ALLOW,
        )
