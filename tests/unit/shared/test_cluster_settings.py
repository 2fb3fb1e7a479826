"""Settings of existing clusters: what they become, and what is said of those that do not fit."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat

from certificates import Authority, write
from waybill_shared.contract.errors import UserError
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer, make_producer
from waybill_shared.settings.kafka import KafkaSettings
from waybill_shared.settings.redis import RedisSettings
from waybill_shared.settings.service import ServiceSettings, read_settings

PASSWORD = "s3cret-and-nobody-reads-it"
LOGIN = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "ada", "SASL_PASSWORD": PASSWORD}
NEEDS = "WAYBILL_KAFKA_SECURITY_PROTOCOL=SASL_SSL needs "


def kafka(monkeypatch: pytest.MonkeyPatch, **settings: str) -> KafkaSettings:
    for name, value in settings.items():
        monkeypatch.setenv(f"WAYBILL_KAFKA_{name}", value)
    return read_settings(KafkaSettings)


def refusal(monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    with pytest.raises(UserError) as refused:
        kafka(monkeypatch, **settings)
    return str(refused.value)


def redis_refusal(monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    for name, value in settings.items():
        monkeypatch.setenv(f"WAYBILL_REDIS{name}", value)
    with pytest.raises(UserError) as refused:
        read_settings(RedisSettings)
    return str(refused.value)


def test_without_settings_kafka_is_reached_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "PLAINTEXT"}
    cluster = kafka(monkeypatch).kafka_cluster()
    assert cluster.client_options() == plain
    assert cluster.java_options() == plain


def test_a_login_reaches_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = kafka(monkeypatch, **LOGIN).kafka_cluster()
    assert cluster.client_options().items() >= {
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.username", "ada"),
        ("sasl.password", PASSWORD),
    }
    java = cluster.java_options()
    assert (java["security.protocol"], java["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert java["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="ada" password="{PASSWORD}";'
    )


def test_quotes_in_a_password_do_not_end_the_jaas_line(monkeypatch: pytest.MonkeyPatch) -> None:
    login = {**LOGIN, "SASL_MECHANISM": "PLAIN", "SASL_PASSWORD": 'a"; x\\ y="\n'}
    java = kafka(monkeypatch, **login).kafka_cluster().java_options()
    assert java["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        r' username="ada" password="a\"; x\\ y=\"\n";'
    )


def test_the_password_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path / "password", f"{PASSWORD} \n")
    cluster = kafka(
        monkeypatch,
        SECURITY_PROTOCOL="SASL_PLAINTEXT",
        SASL_USERNAME="ada",
        SASL_PASSWORD_FILE=file,
    ).kafka_cluster()
    assert cluster.client_options()["sasl.password"] == f"{PASSWORD} "


@pytest.mark.parametrize("password", [None, "of the key"])
@pytest.mark.parametrize("form", [PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8])
def test_certificates_and_any_key_reach_both_clients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: PrivateFormat, password: str | None
) -> None:
    authority = Authority("ours")
    issued = authority.issue("ada")
    cluster = kafka(
        monkeypatch,
        SECURITY_PROTOCOL="SSL",
        SSL_CA_FILE=write(tmp_path / "ca", authority.certificate),
        SSL_CERTIFICATE_FILE=write(tmp_path / "certificate", issued.certificate),
        SSL_KEY_FILE=write(tmp_path / "key", issued.key_pem(form, password)),
        **({"SSL_KEY_PASSWORD": password} if password else {}),
    ).kafka_cluster()
    key = issued.key_pem(PrivateFormat.PKCS8)
    assert cluster.client_options().items() >= {
        ("ssl.ca.pem", authority.certificate),
        ("ssl.certificate.pem", issued.certificate),
        ("ssl.key.pem", key),
    }
    assert cluster.java_options().items() >= {
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.certificates", authority.certificate),
        ("ssl.keystore.type", "PEM"),
        ("ssl.keystore.certificate.chain", issued.certificate),
        ("ssl.keystore.key", key),
    }
    for made in (make_producer(cluster), make_consumer(cluster, "g"), make_admin(cluster)):
        assert made is not None  # librdkafka itself takes every one of the options


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"SASL_PASSWORD": PASSWORD},
            (
                "WAYBILL_KAFKA_SASL_PASSWORD is set, but WAYBILL_KAFKA_SECURITY_PROTOCOL=PLAINTEXT"
                " does not use it: set that to SASL_SSL, or unset WAYBILL_KAFKA_SASL_PASSWORD"
            ),
        ),
        (
            {**LOGIN, "SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SSL_CA_FILE": "ca.pem"},
            (
                "WAYBILL_KAFKA_SSL_CA_FILE is set, but"
                " WAYBILL_KAFKA_SECURITY_PROTOCOL=SASL_PLAINTEXT does not use it: set that to"
                " SASL_SSL, or unset WAYBILL_KAFKA_SSL_CA_FILE"
            ),
        ),
        (
            {"SECURITY_PROTOCOL": "SASL_SSL"},
            (
                f"{NEEDS}WAYBILL_KAFKA_SASL_USERNAME; {NEEDS}WAYBILL_KAFKA_SASL_PASSWORD_FILE (or"
                " WAYBILL_KAFKA_SASL_PASSWORD)"
            ),
        ),
        ({**LOGIN, "SASL_PASSWORD": ""}, "WAYBILL_KAFKA_SASL_PASSWORD is empty"),
        (
            {**LOGIN, "SASL_PASSWORD_FILE": "password"},
            "of WAYBILL_KAFKA_SASL_PASSWORD and WAYBILL_KAFKA_SASL_PASSWORD_FILE unset one",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_CERTIFICATE_FILE": "x"},
            "WAYBILL_KAFKA_SSL_CERTIFICATE_FILE needs WAYBILL_KAFKA_SSL_KEY_FILE",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_KEY_FILE": "x"},
            "WAYBILL_KAFKA_SSL_KEY_FILE needs WAYBILL_KAFKA_SSL_CERTIFICATE_FILE",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_KEY_PASSWORD": PASSWORD},
            "WAYBILL_KAFKA_SSL_KEY_PASSWORD needs WAYBILL_KAFKA_SSL_KEY_FILE",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_CA_FILE": "/nowhere/ca.pem"},
            "WAYBILL_KAFKA_SSL_CA_FILE=/nowhere/ca.pem cannot be read: No such file or directory",
        ),
        (
            {"SECURITY_PROTOCOL": "SSL", "SSL_CA_FILE": __file__},
            (
                f"WAYBILL_KAFKA_SSL_CA_FILE={__file__} holds no certificate: it takes PEM,"
                " beginning with -----BEGIN CERTIFICATE-----"
            ),
        ),
    ],
)
def test_settings_that_do_not_fit_are_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], said: str
) -> None:
    assert refusal(monkeypatch, **settings) == said


def test_an_unknown_protocol_is_answered_with_those_that_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = refusal(monkeypatch, SECURITY_PROTOCOL="TLS")
    assert said.startswith("WAYBILL_KAFKA_SECURITY_PROTOCOL: ")
    assert "'SASL_SSL'" in said


def test_a_password_file_that_is_empty_is_no_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write(tmp_path / "password", "\n")
    given = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "ada", "SASL_PASSWORD_FILE": file}
    assert refusal(monkeypatch, **given) == f"WAYBILL_KAFKA_SASL_PASSWORD_FILE={file} is empty"


@pytest.mark.parametrize(
    ("of_file", "given", "said"),
    [
        ("right", None, "has a password: set WAYBILL_KAFKA_SSL_KEY_PASSWORD"),
        (None, "right", "has no password: unset WAYBILL_KAFKA_SSL_KEY_PASSWORD"),
        (
            "right",
            "wrong",
            "is no private key in PEM, or WAYBILL_KAFKA_SSL_KEY_PASSWORD is not its password",
        ),
    ],
)
def test_a_key_that_cannot_be_opened_is_told_with_its_password_setting(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    of_file: str | None,
    given: str | None,
    said: str,
) -> None:
    issued = Authority("ours").issue("ada")
    key = write(tmp_path / "key", issued.key_pem(PrivateFormat.PKCS8, of_file))
    refused = refusal(
        monkeypatch,
        SECURITY_PROTOCOL="SSL",
        SSL_CERTIFICATE_FILE=write(tmp_path / "certificate", issued.certificate),
        SSL_KEY_FILE=key,
        **({"SSL_KEY_PASSWORD": given} if given else {}),
    )
    assert refused == f"WAYBILL_KAFKA_SSL_KEY_FILE={key} {said}"


def test_redis_is_reached_with_the_authority_that_was_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority("ours")
    monkeypatch.setenv("WAYBILL_REDIS", "rediss://status:p%40ss@redis.example:6380/2")
    monkeypatch.setenv("WAYBILL_REDIS_SSL_CA_FILE", write(tmp_path / "ca", authority.certificate))
    server = read_settings(RedisSettings).redis_server()
    with server.client(timeout_s=1.0) as client:
        options = client.connection_pool.connection_kwargs
    assert server.user == "status"
    assert (options["host"], options["port"], options["db"]) == ("redis.example", 6380, 2)
    assert (options["username"], options["password"]) == ("status", "p@ss")
    assert options["ssl_ca_data"] == authority.certificate


@pytest.mark.parametrize(
    "url", ["http://redis:6379", f"redis://u:{PASSWORD}:x#y@h:1", f"u:{PASSWORD}@h:1"]
)
def test_what_is_no_url_of_redis_is_not_repeated(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    said = redis_refusal(monkeypatch, **{"": url})
    assert said.startswith("WAYBILL_REDIS is no URL of Redis: it takes rediss://")
    assert PASSWORD not in said


def test_an_authority_for_a_redis_without_tls_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write(tmp_path / "ca", Authority("ours").certificate)
    said = redis_refusal(monkeypatch, **{"": "redis://h:6379/0", "_SSL_CA_FILE": file})
    assert said.startswith("WAYBILL_REDIS_SSL_CA_FILE is set, but WAYBILL_REDIS is a URL without")


def test_no_secret_is_in_what_a_value_shows_of_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    issued = Authority("ours").issue("ada")
    key = issued.key_pem(PrivateFormat.PKCS8)
    monkeypatch.setenv("WAYBILL_REDIS", f"rediss://status:{PASSWORD}@h:1/0")
    kafka(
        monkeypatch,
        **LOGIN,
        SSL_CERTIFICATE_FILE=write(tmp_path / "certificate", issued.certificate),
        SSL_KEY_FILE=write(tmp_path / "key", key),
    )
    settings, of_redis = read_settings(ServiceSettings), read_settings(RedisSettings)
    cluster, server = settings.kafka_cluster(), of_redis.redis_server()
    for shown in (settings, of_redis, cluster, cluster.login, cluster.certificate, server):
        assert PASSWORD not in f"{shown} {shown!r}"
        assert key not in repr(shown)
    assert f"{PASSWORD}" not in str(make_admin(cluster))
