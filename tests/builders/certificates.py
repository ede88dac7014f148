"""For tests: a certificate that signs itself, made by the ``openssl`` of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """The files of a certificate for a host, and of its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={host}",
            "-addext", f"subjectAltName=DNS:{host}", "-keyout", str(key), "-out", str(cert),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key
