"""What a hundred idle connections cost on the host: resident memory, threads, processor time.

    python benchmarks/fleet/idle.py [--connections 100] [--seconds 20] [--json FILE]

Each is a transport of its own, as a fleet's boards have; the servers are a few OpenSSH servers on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.boards import boards

SERVERS = ("a", "b", "c", "d")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long they are idle; keep-alives go on")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    me = psutil.Process()
    with tempfile.TemporaryDirectory() as folder, boards(Path(folder), SERVERS) as lab:
        os.environ["HOME"] = str(lab.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        from argus_edge.devices.ssh import SshTransport

        imported = me.memory_info().rss
        addresses = [server.address for server in lab.servers.values()]
        links = [SshTransport(addresses[number % len(addresses)]) for number in range(arguments.connections)]
        try:
            for link in links:
                assert link.run(["true"], timeout=30).status == 0
            before = sum(me.cpu_times()[:2])
            time.sleep(arguments.seconds)
            cpu = (sum(me.cpu_times()[:2]) - before) / arguments.seconds
            assert all(link.connect().alive for link in links)
            memory, threads = me.memory_info().rss, threading.active_count()
        finally:
            for link in links:
                link.close()
    result = {
        "connections": arguments.connections,
        "rss_bytes": memory,
        "rss_before_bytes": imported,
        "threads": threads,
        "cpu_share": cpu,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    print(
        f"{arguments.connections} idle connections: {memory / 1e6:.0f} MB resident ({imported / 1e6:.0f} MB before the "
        f"first), {threads} threads, {100 * cpu:.1f} % of a core"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
