"""The audit log: the latest changes requested over the API, with the client that requested each."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from service.stores.connection import PREFIX, Client
from service.stores.records import encode
from service.stores.results.recent import RecentList


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A change requested over the API and answered at ``at_us``; contains no secret and nothing of the body.

    ``key`` is the id of the API key, ``environment`` for that of the environment, None where no key is required.
    ``client``: address of the caller; empty where it is unknown.
    """

    at_us: int
    key: str | None
    key_name: str | None
    client: str
    method: str
    route: str
    resource: str
    status: int


class AuditLog(RecentList):
    """The latest changes."""

    def __init__(self, client: Client, *, kept: int) -> None:
        super().__init__(client, PREFIX + "audit", kept=kept)

    def note(self, entry: AuditEntry) -> None:
        """Add an entry; the oldest are removed beyond the number to keep."""
        # A command whose reply was lost is sent again, so an entry may be listed twice; none is ever missing.
        self._client.xadd(self.key, {"record": encode(**asdict(entry))}, maxlen=self._kept, approximate=True)
