"""The project's own packages as one archive, for cluster machines that lack them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

from streams import PACKAGES_PREFIX, folder_of_package, replacing

SHIPPED = ("streams", "joins", "aggregates", "nfa", "constraints", "workflows", "shards", "pipeline")

_LEFT_OUT = {"__pycache__"}
_SAME_TIME = (1980, 1, 1, 0, 0, 0)  # equal sources give equal archives


def pack(folder: Path) -> Path:
    """Write the packages that tasks import into an archive, and return the archive's path.

    The name has a digest of the packages. An archive that exists is not written again.
    """
    body = BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, content in _sources():
            archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), content, zipfile.ZIP_DEFLATED)
    digest = blake2b(body.getvalue(), digest_size=8).hexdigest()
    target = folder / f"forestall-{digest}.zip"
    if not target.exists():
        with replacing(target, is_durable=False) as file:
            file.write(body.getvalue())
    return target


def _sources() -> Iterator[tuple[str, bytes]]:
    outer = PACKAGES_PREFIX.split(".")[:-1]
    for depth in range(len(outer)):
        yield "/".join([*outer[: depth + 1], "__init__.py"]), b""
    for package in SHIPPED:
        top = folder_of_package(package)
        for path in sorted(top.rglob("*")):
            place = path.relative_to(top)
            if path.is_file() and not _LEFT_OUT & set(place.parts):
                yield "/".join([*outer, package, place.as_posix()]), path.read_bytes()
