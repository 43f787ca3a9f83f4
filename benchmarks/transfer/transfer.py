"""Sending and fetching a large file over a loopback sshd, against scp: medians of interleaved pairs.

    python benchmarks/transfer/transfer.py [--megabytes 400] [--pairs 5] [--json FILE]

Both ends share this machine's processor, so what is compared is the work per byte, not a network. Every send of
ours includes the check of the file's SHA-256 on the far side before it is renamed into place; scp checks nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paramiko

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from argus_edge.artifacts import sha256_file
from argus_edge.devices.ssh import SshTransport
from tests.support.sshd import serve

SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server")


def timed(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(folder: Path, megabytes: int, pairs: int) -> dict:
    load = os.getloadavg()[0]
    payload = folder / "payload"
    with open(payload, "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    digest = sha256_file(payload)
    server_program = next((path for path in SFTP_SERVERS if Path(path).exists()), None)
    if server_program is None:
        raise SystemExit("scp needs OpenSSH's sftp-server on the far side; it is not installed here")
    with serve(folder / "sshd", options=f"Subsystem sftp {server_program}\n") as server:
        config = server.config()
        link = SshTransport("board", config=config)
        link.home()
        scp = ["scp", "-q", "-F", str(config)]
        times: dict[str, list[float]] = {name: [] for name in ("put", "scp put", "put again", "get", "scp get")}
        again_bytes = 0
        for pair in range(pairs + 1):  # the first pair warms the page cache and is dropped
            shutil.rmtree(server.home / "ours", ignore_errors=True)
            steps = [
                ("put", lambda: link.put(payload, "~/ours/payload", sha256=digest)),
                ("scp put", lambda: subprocess.run([*scp, str(payload), f"board:{server.home}/theirs"], check=True)),
            ]
            # Which one goes first alternates.
            round_times = {name: timed(step) for name, step in (steps if pair % 2 else steps[::-1])}
            started = time.perf_counter()
            again_bytes += link.put(payload, "~/ours/payload", sha256=digest)
            round_times["put again"] = time.perf_counter() - started
            steps = [
                ("get", lambda: link.get("~/ours/payload", folder / "ours", limit=1 << 40)),
                (
                    "scp get",
                    lambda: subprocess.run([*scp, f"board:{server.home}/theirs", str(folder / "b")], check=True),
                ),
            ]
            round_times.update({name: timed(step) for name, step in (steps if pair % 2 else steps[::-1])})
            if sha256_file(folder / "ours") != digest:
                raise SystemExit("the fetched file differs")
            if pair:
                for name, seconds in round_times.items():
                    times[name].append(seconds)
        link.close()
    ratio = {
        way: statistics.median(b / a for a, b in zip(times[way], times[f"scp {way}"], strict=True))
        for way in ("put", "get")
    }
    return {
        "megabytes": megabytes,
        "pairs": pairs,
        "seconds": {name: [round(value, 3) for value in values] for name, values in times.items()},
        "median_mb_s": {name: round(megabytes / statistics.median(values), 1) for name, values in times.items()},
        "rate_against_scp": {way: round(value, 3) for way, value in ratio.items()},
        "bytes_sent_again": again_bytes,
        "machine": {
            "cpu": next((x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name")), "?"),
            "cores": os.cpu_count(),
            "load_before": round(load, 1),
            "python": platform.python_version(),
            "paramiko": paramiko.__version__,
            "openssh": subprocess.run(["ssh", "-V"], capture_output=True, text=True).stderr.strip(),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="argus-transfer-") as folder:
        result = measure(Path(folder), options.megabytes, options.pairs)
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
