"""Certificates and keys from the files that settings name; what is wrong names the setting."""

import ssl
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


def read_text(variable: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"{variable}={file} cannot be read: {reason}") from error


def read_authorities(name: str, file: Path | None) -> str | None:
    """Return the certificates to trust; None without a file: those of the machine."""
    return None if file is None else read_certificates(name, file)


def read_certificates(variable: str, file: Path) -> str:
    text = read_text(variable, file)
    try:
        ssl.create_default_context(cadata=text)
    except ssl.SSLError as error:
        raise ValueError(
            f"{variable}={file} holds no certificate: it takes PEM, beginning with"
            " -----BEGIN CERTIFICATE-----"
        ) from error
    return text


def read_key(variable: str, file: Path, password: str | None) -> str:
    """Return the key in PKCS #8 and not encrypted, whatever form and password the file has."""
    text = read_text(variable, file)
    try:
        key = load_pem_private_key(text.encode(), password.encode() if password else None)
    except TypeError as error:  # a password too many, or one too few
        detail = "has no password" if password else "has a password"
        hint = "unset" if password else "set"
        raise ValueError(
            f"{variable}={file} {detail}: {hint} {variable.removesuffix('FILE')}PASSWORD"
        ) from error
    except ValueError as error:  # its text may hold parts of the key
        raise ValueError(
            f"{variable}={file} is no private key in PEM, or"
            f" {variable.removesuffix('FILE')}PASSWORD is not its password"
        ) from error
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
