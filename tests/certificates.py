"""Certificates for tests: an authority that is made anew, and what it signs for the loopback."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
END = BEGIN + timedelta(days=365 * 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """Certificate and key as PEM."""

    certificate: str
    key: ec.EllipticCurvePrivateKey

    def key_pem(self, form: PrivateFormat, password: str | None = None) -> str:
        hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, form, hidden).decode()


class Authority:
    def __init__(self, name: str) -> None:
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(self._name, self._key, authority=True)

    def issue(self, name: str) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        return Issued(certificate=self._sign(_named(name), key, authority=False), key=key)

    def _sign(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> str:
        places = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(BEGIN)
            .not_valid_after(END)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(places), critical=False)
            .sign(self._key, SHA256())
            .public_bytes(Encoding.PEM)
            .decode()
        )


def write(file: Path, text: str) -> str:
    """The path, as settings take it."""
    file.write_text(text, encoding="utf-8")
    return str(file)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
