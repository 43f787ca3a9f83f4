"""Who else used the processor in a window: /proc/stat and every process's times, read before and after it."""

import os

from . import system

# A process is named from this share of one core on.
NAMED_SHARE = 0.05
NAMED = 10


class Snapshot:
    """CPU time so far: of the machine, and of each process."""

    def __init__(self, clock):
        self.t = clock()
        self.busy, self.steal, self.cores = machine_seconds()
        # (pid, start, process group) -> seconds; the start time is part of the key: a pid can be given anew.
        self.processes = {}
        for name in os.listdir("/proc"):
            fields = system.stat_fields(name) if name.isdigit() else None
            if fields:
                seconds = (int(fields[11]) + int(fields[12])) / system.CLOCK_TICKS
                self.processes[int(name), fields[19], int(fields[2])] = seconds


def machine_seconds():
    """Return (seconds not idle, seconds stolen by the hypervisor, number of cores) from /proc/stat."""
    lines = system.read_text("/proc/stat").splitlines()
    values = [int(value) for value in lines[0].split()[1:]] if lines else []
    values += [0] * (10 - len(values))
    user, nice, kernel, _, _, irq, softirq, steal = values[:8]
    busy = (user + nice + kernel + irq + softirq + steal) / system.CLOCK_TICKS
    cores = sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())
    return busy, steal / system.CLOCK_TICKS, max(1, cores)


def describe(pid):
    """Return a process's name, and its unit where a cgroup tells."""
    name = system.read_text("/proc/%d/comm" % pid, 64).strip() or "?"
    group = system.read_text("/proc/%d/cgroup" % pid, 4096).strip().rsplit("/", 1)[-1]
    unit = group if group.endswith((".service", ".scope")) else ""
    return name, unit


def declared(name, unit, background):
    """Return whether a process belongs to a load that the user declared, by its name or its unit."""
    return any(word in (name, unit) or word + ".service" == unit for word in background)


def compare(before, after, ours, background):
    """Return the other load between two snapshots.

    Parameters
    ----------
    ours
        Pids and process groups whose time is the run's own: the worker with its children, the supervisor.
    background
        Declared loads: left out of the figures, and named apart.

    Returns
    -------
    dict
        ``other_cpu_share``: CPU time of all others / (time x cores); ``other_load``: those above 5 % of a core;
        ``background_load``: the declared ones that were seen; ``steal_share``.
    """
    seconds = max(after.t - before.t, 1e-9)
    own = declared_s = 0.0
    others, seen = [], []
    for key, total in after.processes.items():
        pid, _, group = key
        used = total - before.processes.get(key, 0.0)
        if used <= 0:
            continue
        if pid in ours or group in ours:
            own += used
            continue
        share = used / seconds
        if not background and share < NAMED_SHARE:
            continue
        name, unit = describe(pid)
        text = "%s%s: %.0f %% of a core" % (name, " (%s)" % unit if unit else "", 100 * share)
        if declared(name, unit, background):
            declared_s += used
            seen.append(text)
        elif share >= NAMED_SHARE:
            others.append((share, text))
    others.sort(reverse=True)
    rest = max(0.0, after.busy - before.busy - own - declared_s)
    return {
        "other_cpu_share": min(1.0, rest / (seconds * after.cores)),
        "other_load": [text for _, text in others[:NAMED]],
        "background_load": seen[:NAMED],
        "steal_share": max(0.0, after.steal - before.steal) / (seconds * after.cores),
    }
