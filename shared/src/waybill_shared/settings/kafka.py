"""Settings of an existing Kafka cluster: how it is reached, and as whom.

What contradicts or is missing is one error that names the variable and the fix, never a value.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from waybill_shared.kafka.cluster import ClientCertificate, KafkaCluster, Login, Mechanism, Protocol
from waybill_shared.settings.pem import read_authorities, read_certificates, read_key, read_text

PREFIX: Final = "WAYBILL_"
SASL_ONLY: Final = (
    "kafka_sasl_mechanism",
    "kafka_sasl_username",
    "kafka_sasl_password",
    "kafka_sasl_password_file",
)
SSL_ONLY: Final = (
    "kafka_ssl_ca_file",
    "kafka_ssl_certificate_file",
    "kafka_ssl_key_file",
    "kafka_ssl_key_password",
)


class KafkaSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    kafka: str = Field(default="127.0.0.1:9092", description="bootstrap servers")
    kafka_security_protocol: Protocol = Field(
        default="PLAINTEXT", description="SASL_SSL, SSL, SASL_PLAINTEXT or PLAINTEXT"
    )
    kafka_sasl_mechanism: Mechanism | None = Field(
        default=None, description="SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN; SCRAM-SHA-512 unless set"
    )
    kafka_sasl_username: str | None = Field(default=None, description="who the ACLs are for")
    kafka_sasl_password: SecretStr | None = Field(default=None, description="or rather a file")
    kafka_sasl_password_file: Path | None = Field(
        default=None, description="the password and nothing else; a newline at its end is dropped"
    )
    kafka_ssl_ca_file: Path | None = Field(
        default=None, description="PEM: whom to trust; the machine's own authorities unless set"
    )
    kafka_ssl_certificate_file: Path | None = Field(
        default=None, description="PEM: the client certificate and its chain"
    )
    kafka_ssl_key_file: Path | None = Field(default=None, description="PEM: the certificate's key")
    kafka_ssl_key_password: SecretStr | None = Field(
        default=None, description="of the key's file, if it has one"
    )

    @model_validator(mode="after")
    def _kafka_settings_fit(self) -> Self:
        problems = [*_without_effect(self), *_find_missing(self)]
        if problems:
            raise ValueError("; ".join(problems))
        self.kafka_cluster()
        return self

    def kafka_cluster(self) -> KafkaCluster:
        """Read the files and return the cluster.

        The message of ValueError names the file that is wrong.
        """
        return KafkaCluster(
            bootstrap=self.kafka,
            protocol=self.kafka_security_protocol,
            login=self._login(),
            authorities=read_authorities(variable("kafka_ssl_ca_file"), self.kafka_ssl_ca_file),
            certificate=self._certificate(),
        )

    def _login(self) -> Login | None:
        if not self.kafka_security_protocol.startswith("SASL"):
            return None
        assert self.kafka_sasl_username is not None
        return Login(
            mechanism=self.kafka_sasl_mechanism or "SCRAM-SHA-512",
            username=self.kafka_sasl_username,
            password=self._password(),
        )

    def _password(self) -> str:
        if self.kafka_sasl_password is not None:
            return self.kafka_sasl_password.get_secret_value()
        assert self.kafka_sasl_password_file is not None
        name = variable("kafka_sasl_password_file")
        password = read_text(name, self.kafka_sasl_password_file).removesuffix("\n")
        if not password:
            raise ValueError(f"{name}={self.kafka_sasl_password_file} is empty")
        return password

    def _certificate(self) -> ClientCertificate | None:
        chain, key = self.kafka_ssl_certificate_file, self.kafka_ssl_key_file
        if chain is None or key is None:
            return None
        password = self.kafka_ssl_key_password
        return ClientCertificate(
            chain=read_certificates(variable("kafka_ssl_certificate_file"), chain),
            key=read_key(
                variable("kafka_ssl_key_file"),
                key,
                password.get_secret_value() if password else None,
            ),
        )


def _without_effect(settings: KafkaSettings) -> Iterator[str]:
    """Yield a message for settings that the protocol does not use.

    Most likely the protocol was forgotten.
    """
    protocol = settings.kafka_security_protocol
    for names, part in ((SASL_ONLY, "SASL"), (SSL_ONLY, "SSL")):
        found = [name for name in names if getattr(settings, name) is not None]
        if found and part not in protocol:
            wanted = "SASL_SSL" if part == "SASL" or protocol.startswith("SASL") else "SSL"
            yield (
                f"{variable(found[0])} is set, but WAYBILL_KAFKA_SECURITY_PROTOCOL={protocol} does"
                f" not use it: set that to {wanted}, or unset {variable(found[0])}"
            )


def _find_missing(settings: KafkaSettings) -> Iterator[str]:
    password, file = settings.kafka_sasl_password, settings.kafka_sasl_password_file
    if settings.kafka_security_protocol.startswith("SASL"):
        needs = f"WAYBILL_KAFKA_SECURITY_PROTOCOL={settings.kafka_security_protocol} needs"
        if not settings.kafka_sasl_username:
            yield f"{needs} WAYBILL_KAFKA_SASL_USERNAME"
        if password is None and file is None:
            yield f"{needs} WAYBILL_KAFKA_SASL_PASSWORD_FILE (or WAYBILL_KAFKA_SASL_PASSWORD)"
    if password is not None and not password.get_secret_value():
        yield "WAYBILL_KAFKA_SASL_PASSWORD is empty"
    if password is not None and file is not None:
        yield "of WAYBILL_KAFKA_SASL_PASSWORD and WAYBILL_KAFKA_SASL_PASSWORD_FILE unset one"
    chain, key = settings.kafka_ssl_certificate_file, settings.kafka_ssl_key_file
    if chain is not None and key is None:
        yield "WAYBILL_KAFKA_SSL_CERTIFICATE_FILE needs WAYBILL_KAFKA_SSL_KEY_FILE"
    if key is not None and chain is None:
        yield "WAYBILL_KAFKA_SSL_KEY_FILE needs WAYBILL_KAFKA_SSL_CERTIFICATE_FILE"
    if settings.kafka_ssl_key_password is not None and key is None:
        yield "WAYBILL_KAFKA_SSL_KEY_PASSWORD needs WAYBILL_KAFKA_SSL_KEY_FILE"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"
