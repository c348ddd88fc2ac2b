"""What runs in a folder, for people and programs."""

import re
import time
from typing import Any

from foul.deploy.certificates import valid_until
from foul.deploy.federation import RunningFederation
from foul.deploy.plan import Process
from foul.deploy.processes import seconds_since
from foul.deploy.supervisor import Note


def describe(federation: RunningFederation) -> dict[str, Any]:
    """Processes, and nodes as the SuperLink sees them."""
    notes = federation.notes()
    supervisor = Process("supervisor", ())
    processes = [
        _process(federation, process, notes.get(process.name, Note()))
        for process in (supervisor, *federation.plan.processes)
    ]
    nodes, answers = [], False
    if federation.is_server:
        answers = federation.control.healthy()
        if answers:
            nodes = [
                {"client": node.name, "node_id": node.id, "status": node.status}
                for node in federation.control.nodes()
            ]
    return {
        "folder": str(federation.folder.path),
        "role": "server" if federation.is_server else "site",
        "door": federation.plan.door,
        "up": all(p["state"] == "running" for p in processes),
        "certificate_until": _certificate_until(federation),
        "superlink_answers": answers if federation.is_server else None,
        "processes": processes,
        "nodes": nodes,
    }


def _certificate_until(federation: RunningFederation) -> str:
    """The day on which what nodes trust ends: the server's certificate, at a site the authority."""
    name = "server.crt" if federation.is_server else "ca.crt"
    return f"{valid_until(federation.folder.certificates / name):%Y-%m-%d}"


def _process(federation: RunningFederation, process: Process, note: Note) -> dict[str, Any]:
    alive = note.alive
    since = time.time() - seconds_since(note.started) if alive else None
    return {
        "name": process.name,
        "state": "running" if alive else _why_not(federation, process, note),
        "pid": note.pid if alive else None,
        "port": process.port,
        "since": since and time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(since)),
        "restarts": note.restarts,
        "about": _about(federation, process.name, alive),
    }


def _why_not(federation: RunningFederation, process: Process, note: Note) -> str:
    if not federation.supervised:
        return "stopped"
    if (federation.folder.held / process.name).exists():
        return "held"
    return "will restart" if note.restarts else "waiting"


def _about(federation: RunningFederation, name: str, alive: bool) -> str:
    """What a worker holds; whether a SuperNode was let in."""
    kind, _, client = name.partition("-")
    if kind == "worker" and alive:
        found = re.findall(r"^node .*: ready \((.*)\)$", federation.log(name), re.MULTILINE)
        return str(found[-1]) if found and federation.listens(client) else "loading"
    if kind == "supernode" and alive:
        return "joined" if federation.has_joined(client) else "not let in yet"
    return ""
