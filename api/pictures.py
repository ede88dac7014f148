"""HTTP headers for pictures. They forbid the browser to execute scripts or fetch resources in a picture."""

from __future__ import annotations

SVG = "image/svg+xml"
SOURCE_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}
PICTURE_HEADERS = {
    **SOURCE_HEADERS,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}
