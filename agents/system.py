"""What the agent asks of Linux about processes and memory: identities, resident sets, CPU time. Reads /proc only."""

import os

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read_text(path, limit=1 << 20):
    """Return a small file's text, or "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def boot_id():
    """Return the id that the kernel drew at boot, or ""."""
    return read_text("/proc/sys/kernel/random/boot_id").strip()


def stat_fields(pid):
    """Return the fields of /proc/PID/stat after the command's name (state first), or None without such a process."""
    text = read_text("/proc/%s/stat" % pid)
    # The name is in parentheses and may itself hold spaces and parentheses.
    _, closed, rest = text.rpartition(")")
    fields = rest.split()
    return fields if closed and len(fields) > 21 else None


def identity(pid):
    """Return what names a process for good: its pid, its start in clock ticks after boot, and the boot id.

    Ask it of another process, not of oneself: qemu-user fakes /proc/self/stat.
    """
    fields = stat_fields(pid)
    return {"pid": pid, "start": int(fields[19]) if fields else 0, "boot_id": boot_id()}


def age(who):
    """Return the seconds since the process of that identity started, whatever was done to the clock; None if untold."""
    words = read_text("/proc/uptime").split()
    if not words or not isinstance(who.get("start"), int) or who.get("boot_id") != boot_id():
        return None
    return max(0.0, float(words[0]) - who["start"] / float(CLOCK_TICKS))


def alive(who):
    """Return whether the process of that identity still runs. A zombie does not, though ``kill(pid, 0)`` would pass."""
    if not isinstance(who, dict) or not isinstance(who.get("pid"), int) or who.get("boot_id") != boot_id():
        return False
    fields = stat_fields(who["pid"])
    return fields is not None and fields[0] not in "ZX" and int(fields[19]) == who.get("start")


def cpu_seconds(pid):
    """Return the seconds of user and system time of a process and of children it has waited for; None if it is gone."""
    fields = stat_fields(pid)
    return sum(int(value) for value in fields[11:15]) / CLOCK_TICKS if fields else None


def status_bytes(pid="self"):
    """Return the sizes of /proc/PID/status (VmRSS, VmHWM, RssAnon, RssFile, VmSwap …) as a dict of bytes."""
    sizes = {}
    for line in read_text("/proc/%s/status" % pid).splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB":
            sizes[name] = int(words[0]) * 1024
    return sizes


def memory_available():
    """Return MemAvailable in bytes, or None."""
    for line in read_text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def oom_kills():
    """Return how many processes the kernel has killed for memory since boot, here or in this cgroup; 0 if untold."""
    count = 0
    for line in (read_text("/proc/vmstat") + read_text("/sys/fs/cgroup/memory.events")).splitlines():
        if line.startswith("oom_kill "):
            count += int(line.split()[1])
    return count


def killed_for_memory(pid, log="/dev/kmsg"):
    """Return whether the kernel's log says that it killed a process for memory; False where the log may not be read.

    Kernels before 4.13, a Jetson Nano's among them, count no such kills.
    """
    words = ("Killed process %d (" % pid).encode("ascii")
    try:
        file = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        while True:
            try:
                record = os.read(file, 8192)  # each read gives one message
            except BrokenPipeError:
                continue  # newer messages have taken the place of the one that was next
            except OSError:
                return False  # no more of them
            if words in record:
                return True
            if not record:
                return False
    finally:
        os.close(file)
