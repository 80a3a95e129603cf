"""Ports of loopback for private servers, each given once."""

import socket
from pathlib import Path
from random import randrange

#: The first port that the kernel itself gives to connections and to sockets that ask for any.
EPHEMERAL = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
FIRST = EPHEMERAL // 2


def free_port():
    """Return a port that no one else gets until this process ends: the kernel gives none so low, and no other call."""
    while True:
        port, name = randrange(FIRST, EPHEMERAL), socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0jidomem-port-{port}")  # free again when the process ends, however it does
            with socket.socket() as other:
                other.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        name.detach()  # the descriptor stays open
        return port
