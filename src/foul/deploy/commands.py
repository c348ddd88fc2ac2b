"""The same federation without us: commands for a shell, a unit for systemd, a server for nginx."""

import shlex
import sys
from collections.abc import Sequence

from foul.deploy.addresses import EVERYWHERE, with_port
from foul.deploy.federation import RunningFederation
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import CONNECTION, Process


def shell_commands(federation: RunningFederation) -> str:
    """What the supervisor starts, and how keys are registered, as lines for a shell."""
    lines: list[str] = []
    for process in federation.plan.processes:
        if process.waits_for:
            lines += _registration(federation, process)
        lines += [f"# {process.name}", _line(process), ""]
    return "\n".join(lines)


def _line(process: Process) -> str:
    settings = [f"{key}={value}" for key, value in process.environment.items()]
    return " ".join(map(shlex.quote, ["env", *settings, *process.command]))


def _registration(federation: RunningFederation, process: Process) -> Sequence[str]:
    client = process.name.partition("-")[2]
    key = federation.folder.key(client).with_suffix(".pub")
    command = ["env", f"FLWR_HOME={federation.folder.home}", "flwr", "supernode", "register"]
    return [
        f"# let the node of {client} in",
        shlex.join([*command, str(key), CONNECTION, "--name", client]),
        "",
    ]


def systemd_unit(folder: FederationFolder, user: str) -> str:
    """A unit that keeps the supervisor of this folder running from boot on."""
    supervisor = [sys.executable, "-m", "foul.deploy.supervisor", "--foreground"]
    return f"""[Unit]
Description=foul federation in {folder.path}
After=network-online.target
Wants=network-online.target

[Service]
User={user}
ExecStart={shlex.join([*supervisor, str(folder.path)])}
Restart=on-failure
RestartSec=5
# The supervisor stops its processes in order; what is left after that is killed.
KillMode=mixed
TimeoutStopSec=90
UMask=0077
NoNewPrivileges=yes
ProtectSystem=full
StandardOutput=append:{folder.log("supervisor")}
StandardError=inherit

[Install]
WantedBy=multi-user.target
"""


def nginx_server(federation: RunningFederation, name: str) -> str:
    """A server block that lets through what our proxy does."""
    # Not earlier: they need Flower's own dependencies.
    from foul.deploy.callers import SILENCE
    from foul.deploy.proxy import BODY_LIMIT, DEADLINE

    folder = federation.folder
    listen = "\n    ".join(f"listen {place} ssl;" for place in _doors(federation))
    return f"""server {{
    {listen}
    server_name {name};
    ssl_certificate     {folder.certificates / "server.crt"};
    ssl_certificate_key {folder.certificates / "server.key"};
    ssl_protocols       TLSv1.2 TLSv1.3;
    server_tokens       off;
    client_max_body_size {BODY_LIMIT // 2**20}m;
    # Who does not greet, or does not say what it wants, is hung up on.
    client_header_timeout {SILENCE:.0f}s;

    # What was checked is what is sent: no query, no other spelling, no line break at the end.
    location ~ ^/v1/fleet/(?P<call>[a-z]+(-[a-z]+)*)$(?!\\n) {{
        limit_except POST {{ deny all; }}
        proxy_pass https://{federation.address}/v1/fleet/$call;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header Forwarded "";
        proxy_ssl_trusted_certificate {folder.authority};
        proxy_ssl_verify on;
        proxy_ssl_name localhost;
        proxy_request_buffering off;
        proxy_buffering off;
        proxy_read_timeout {DEADLINE:.0f}s;
    }}
    location / {{ return 404; }}
}}
"""


def _doors(federation: RunningFederation) -> list[str]:
    """Where our proxy listens, in nginx's words: a port alone means all IPv4 addresses."""
    (command,) = [p.command for p in federation.plan.processes if p.name == "proxy"]
    host, port = command[command.index("--host") + 1], federation.ports["proxy"]
    if host not in EVERYWHERE:
        return [with_port(host, port)]
    return [str(port), f"[::]:{port}"] if ":" in host else [str(port)]
