"""The start of Ray: it accepts nobody without a token, and on one machine it listens to that
machine only.

Both have to be said before Ray is imported. Where somebody imported it before, it is as they have
it, with tokens unless they switched them off.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Any

from drmdp.errors import InputError, brief, imported
from drmdp.ui.interrupts import put_off

TOKENS = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
PATIENCE = 10.0
"""Seconds after which nobody answers."""
CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where it is 0, which is the default of two systems, Ray listens on the loopback interface
only.
"""


def prepare(alone: bool) -> None:
    """Have Ray, before it is imported, accept nobody without a token, and `alone` listen to this
    machine only, with a token of its own.
    """
    if "ray" in sys.modules:
        return
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if not alone:
        return
    os.environ.setdefault(CLUSTERS, "0")
    known = os.environ.keys() & TOKENS or Path("~/.ray/auth_token").expanduser().exists()
    if os.environ["RAY_AUTH_MODE"] == "token" and not known:
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def start(address: str | None, cores: int) -> tuple[Any, bool]:
    """Ray, with as many cores here or connected to an address, and whether it was started by this;
    it may be running.
    """
    if address is not None:
        _check(address)
    prepare(address is None)
    with put_off():  # half a module complains when Python ends
        ray = imported("ray", "ray")
    if ray.is_initialized():
        return ray, False
    if address is None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        # they are as urgent as one process would be
        os.environ.setdefault("RAY_worker_niceness", "0")
        ray.init(num_cpus=cores, include_dashboard=False, **QUIET)
    elif os.environ.get(CLUSTERS) == "0":
        fact = f"Ray keeps to this machine in this process ({CLUSTERS}=0)"
        raise InputError(f"address: {fact}; take another one")
    else:
        try:
            ray.init(address=address, **QUIET)
        except (ray.exceptions.RayError, ValueError, RuntimeError, OSError) as error:
            raise InputError(f"address: {address}: {brief(str(error), 300)}") from None
    return ray, True


def _check(address: str) -> None:
    """Refuse what is no address, and one where nobody listens: Ray would wait long."""
    if address == "auto":
        return
    host, mark, port = address.rpartition(":")
    if "//" in address or not (mark and host and port.isdigit() and int(port) < 2**16):
        expected = "auto or host:port of a Ray cluster that this machine is a node of"
        raise InputError(f"address: expected {expected}, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"address: nobody answers at {address}: {reason}") from None
