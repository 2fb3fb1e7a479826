"""An existing Kafka cluster as a value: its address, its protocol and our login.

Only this module makes options of it, for librdkafka and for Java's client. Certificates are inline,
so that a Spark executor on another machine needs no file.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

LOGIN_MODULES: Final[dict[Mechanism, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# What Java's reader of a JAAS line takes for more than itself inside quotes.
JAAS_ESCAPES: Final = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\000"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    mechanism: Mechanism
    username: str
    password: str = field(repr=False)

    def jaas(self) -> str:
        """Return the value of `sasl.jaas.config`, with any characters in the name and the
        password.
        """
        username, password = (
            text.translate(JAAS_ESCAPES) for text in (self.username, self.password)
        )
        module = LOGIN_MODULES[self.mechanism]
        return f'{module} required username="{username}" password="{password}";'


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """Both as PEM, the key in PKCS #8 and in the clear: the form that both clients take."""

    chain: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """`authorities` are the certificates trusted, as PEM; without them the machine's own."""

    bootstrap: str
    protocol: Protocol = "PLAINTEXT"
    login: Login | None = None
    authorities: str | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None

    @property
    def user(self) -> str:
        """The user that ACLs are for, in words."""
        if self.login is not None:
            return f"User:{self.login.username}"
        return "the subject of the client certificate" if self.certificate else "User:ANONYMOUS"

    def client_options(self) -> dict[str, str]:
        """Return the options for librdkafka."""
        options = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.protocol,
        }
        if self.login is not None:
            options |= {
                "sasl.mechanism": self.login.mechanism,
                "sasl.username": self.login.username,
                "sasl.password": self.login.password,
            }
        if self.authorities is not None:
            options["ssl.ca.pem"] = self.authorities
        if self.certificate is not None:
            options["ssl.certificate.pem"] = self.certificate.chain
            options["ssl.key.pem"] = self.certificate.key
        return options

    def java_options(self) -> dict[str, str]:
        """Return the options for Java's client; Spark accepts them with `kafka.` before each."""
        options = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.login is not None:
            options["sasl.mechanism"] = self.login.mechanism
            options["sasl.jaas.config"] = self.login.jaas()
        if self.authorities is not None:
            options["ssl.truststore.type"] = "PEM"
            options["ssl.truststore.certificates"] = self.authorities
        if self.certificate is not None:
            options["ssl.keystore.type"] = "PEM"
            options["ssl.keystore.certificate.chain"] = self.certificate.chain
            options["ssl.keystore.key"] = self.certificate.key
        return options


Kafka: TypeAlias = KafkaCluster | str
"""A cluster, or only the address of one that takes everybody."""


def cluster_of(kafka: Kafka) -> KafkaCluster:
    return KafkaCluster(bootstrap=kafka) if isinstance(kafka, str) else kafka
