"""The audit log: every change that was asked for over the API, and who asked; the latest are kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from service.stores.connection import PREFIX, Client
from service.stores.records import encode
from service.stores.results.recent import RecentList


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A change that somebody asked for; it holds no secret and nothing of the body.

    Attributes:
        at_us: When it was answered, microseconds UTC.
        key: Id of the key; ``environment`` for the one of the environment, None where no key is demanded.
        key_name: Its name then.
        client: Address of the caller; empty where it is not known.
        method: HTTP method.
        route: The operation, with its parameters by name.
        resource: The path that was named.
        status: HTTP status of the answer.
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
        """Keep an entry; the oldest go when there are more than are kept."""
        # A command whose answer was lost is sent again, so an entry may be there twice; none is ever missing.
        self._client.xadd(self.key, {"record": encode(**asdict(entry))}, maxlen=self._kept, approximate=True)
