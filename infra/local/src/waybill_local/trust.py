"""Makes a Java trust the certificates that this machine trusts."""

import contextlib
import os
import re
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.utils import CryptographyDeprecationWarning

from waybill_local.errors import StackError
from waybill_local.java import Java

CERTIFICATES = "SSL_CERT_FILE"
# A trust store holds public certificates only; the format just insists on some password.
TRUST_STORE_PASSWORD = "waybill"

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def trust_options(java: Java, folder: Path) -> tuple[str, ...]:
    """Return JVM options that let `java` trust the certificates that this machine trusts.

    The wheel's Java has its own list. In a company with its own CA it could download nothing. The
    trust store is written to `folder`.
    """
    bundle = find_certificates(java)
    if bundle is None or "javax.net.ssl.trustStore" in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        return ()
    entries = [
        PKCS12Certificate(certificate, f"ca-{number}".encode())
        for number, certificate in enumerate(certificates(bundle))
    ]
    store = folder / "trust.p12"
    encryption = BestAvailableEncryption(TRUST_STORE_PASSWORD.encode())
    store.write_bytes(serialize_java_truststore(entries, encryption))
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}",
    )


def find_certificates(java: Java) -> Path | None:
    """Return the file of certificates that `java` should trust; None if its own list is used."""
    if named := os.environ.get(CERTIFICATES):
        return Path(named)
    if not java.bundled:
        return None  # a system's Java already follows the system's list
    paths = ssl.get_default_verify_paths()
    found = paths.cafile or paths.openssl_cafile
    return Path(found) if Path(found).is_file() else None


def certificates(bundle: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates in a file of PEM blocks.

    Raise StackError if it has none or cannot be read: a person has set the wrong file.
    """
    try:
        found = tuple(_read_certificates(bundle.read_bytes()))
        why = f"{CERTIFICATES} names {bundle}, which holds none in PEM form"
    except OSError as error:
        found, why = (), f"{CERTIFICATES} names {bundle}: {error.strerror}"
    if not found:
        fix = f"set {CERTIFICATES} to a file of PEM certificates, or unset it"
        raise StackError("there are no certificates to trust", why=why, fix=fix)
    return found


def _read_certificates(bundle: bytes) -> Iterator[x509.Certificate]:
    """Yield the certificates of a bundle, without those that break a rule of today.

    Each is read by itself, since a bundle may have such an old one.
    """
    with warnings.catch_warnings(category=CryptographyDeprecationWarning, action="ignore"):
        for pem in _PEM.findall(bundle):
            with contextlib.suppress(ValueError):
                yield x509.load_pem_x509_certificate(pem)
