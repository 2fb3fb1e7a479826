"""Fixtures of the local stack's unit tests: an own cache, a certificate, a running stack."""

import datetime as dt
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from stack_states import make_stack
from waybill_local.state import StackState


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "waybill"


@pytest.fixture
def certificate() -> bytes:
    """A company's CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a company's CA")])
    begins = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=begins,
        not_valid_after=begins + dt.timedelta(days=3650),
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.fixture
def state(tmp_path: Path) -> StackState:
    """A running stack whose supervisor is this very process."""
    folder = tmp_path / ".waybill"
    folder.mkdir()
    return make_stack(folder, psutil.Process(), above=100)
