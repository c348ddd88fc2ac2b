"""Everything that is known after the last entry of a ledger."""

from dataclasses import dataclass, field

from foul.erasure.ledger import Body, Entry
from foul.erasure.records import Client, Job, Request, Version


@dataclass
class State:
    """Clients, requests, jobs and versions, as the entries so far have left them."""

    federation: str = ""
    basis: Body = field(default_factory=dict)
    """What learning took, as measured: the ground of estimates."""
    clients: dict[str, Client] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    versions: list[Version] = field(default_factory=list)
    erased: dict[str, int] = field(default_factory=dict)
    """Client -> the job that erased it; not those who were readmitted."""
    readmitted: list[Body] = field(default_factory=list)
    """Each with its time, and which one of its client it was (`count`, from 1)."""
    verified: list[Body] = field(default_factory=list)
    """What each verification found, when, and which one of its request it was (`count`, from 1)."""
    head: Entry | None = None

    @property
    def current(self) -> Version:
        """The version in service."""
        return self.versions[-1]

    @property
    def active(self) -> list[Client]:
        """Everybody who may take part."""
        return [client for client in self.clients.values() if client.id not in self.erased]

    @property
    def unfinished(self) -> Job | None:
        """The job that was begun and has not ended, if there is one."""
        return next((job for job in self.jobs.values() if not job.finished), None)

    def waiting(self) -> list[Request]:
        """Requests that nobody has begun to serve, oldest first; failed ones are for the asking."""
        return [r for r in self.requests.values() if r.state in ("received", "planned")]

    def clients_of(self, request: Request) -> tuple[str, ...]:
        """Whom this request still has to erase."""
        return tuple(client for client in request.clients if client not in self.erased)
