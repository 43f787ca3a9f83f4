"""The processes behind a port: who listens on it, with their whole process tree, and the memory that they hold."""

import os

from . import memory, system

LISTENING = "0A"
# These hold a port for a server in a container: their memory is not the server's.
PROXIES = ("docker-proxy", "rootlesskit", "rootlessport", "slirp4netns", "pasta", "pasta.avx2")


def socket_inodes(port, root="/proc"):
    """Return the inodes of the TCP sockets that listen on a port, IPv4 and IPv6."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in system.read_text(os.path.join(root, "net", name), 16 << 20).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def holders(inodes, root="/proc"):
    """Return the ids of the processes that have one of the sockets open; those of other users cannot be seen."""
    wanted = {"socket:[%s]" % inode for inode in inodes}
    found = set()
    for name in os.listdir(root):
        if not name.isdigit():
            continue
        folder = os.path.join(root, name, "fd")
        try:
            links = os.listdir(folder)
        except OSError:
            continue
        for link in links:
            try:
                if os.readlink(os.path.join(folder, link)) in wanted:
                    found.add(int(name))
                    break
            except OSError:
                continue
    return found


def family(first, root="/proc"):
    """Return processes with all their descendants: a server's listener starts what holds its models."""
    parents = {}
    for name in os.listdir(root):
        fields = system.stat_fields(name) if name.isdigit() else None
        if fields:
            parents[int(name)] = int(fields[1])
    found = {pid for pid in first if pid in parents}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        grown = bool(more)
        found |= more
    return found


def server(port):
    """Return (process ids, why there are none)."""
    inodes = socket_inodes(port)
    if not inodes:
        return set(), "no process on this device listens on port %d" % port
    first = holders(inodes)
    if not first:
        return set(), "the server's processes cannot be seen: they are another user's, or in a container"
    names = {system.read_text("/proc/%d/comm" % pid, 64).strip() for pid in first}
    if names & set(PROXIES):
        return set(), "the port is held by %s: the server is in a container" % ", ".join(sorted(names))
    return family(first), None


def sizes(pids):
    """Return ``server_tree`` and ``server_pss``: sums over processes, bytes; None where the kernel does not tell."""
    peaks = [system.status_bytes(pid).get("VmHWM") for pid in pids]
    shares = [memory.proportional(pid) for pid in pids]
    return {
        "server_tree": sum(peak for peak in peaks if peak) or None,
        "server_pss": sum(share for share in shares if share) if any(shares) else None,
    }
