"""Memory that is left, swap in use, and the pressure-stall clocks (PSI) of memory and processor."""

from .files import Kept, Unavailable, close_all, keep, under


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where there is no /proc/meminfo."""
    return Memory(system_root)


class Memory:
    """``memory_available_bytes``, ``swap_used_bytes``; ``memory_pressure_s``, ``cpu_pressure_s`` since boot."""

    power = None

    def __init__(self, system_root):
        try:
            self._meminfo = Kept(under(system_root, "/proc/meminfo"))
        except OSError:
            raise Unavailable("no /proc/meminfo")
        self._pressures = []
        for name in ("memory", "cpu"):
            file = keep(under(system_root, "/proc/pressure/" + name))
            # A kernel with PSI switched off has the files, and answers EOPNOTSUPP.
            if file and file.text(256):
                self._pressures.append((name, file))
            elif file:
                file.close()
        self.detail = "meminfo" + "".join(", pressure of " + name for name, _ in self._pressures)

    def read(self):
        """Return bytes and seconds."""
        values = {}
        sizes = meminfo(self._meminfo.text())
        if "MemAvailable" in sizes:
            values["memory_available_bytes"] = sizes["MemAvailable"]
        if "SwapTotal" in sizes and "SwapFree" in sizes:
            values["swap_used_bytes"] = sizes["SwapTotal"] - sizes["SwapFree"]
        for name, file in self._pressures:
            microseconds = stalled(file.text(256))
            if microseconds is not None:
                values[name + "_pressure_s"] = microseconds * 1e-6
        return values

    def vendor(self):
        """Nothing: the kernel is all there is to ask."""
        return {}

    def close(self):
        """Close the files."""
        close_all([self._meminfo] + [file for _, file in self._pressures])


def meminfo(text):
    """Return the sizes of /proc/meminfo in bytes (floats); lines that are not sizes are passed over."""
    sizes = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB" and words[1].isdigit():
            sizes[words[0].rstrip(":")] = float(words[1]) * 1024
    return sizes


def stalled(text):
    """Return the ``some`` line's total of a PSI file in microseconds, or None."""
    for line in text.splitlines():
        if line.startswith("some "):
            total = line.rpartition("total=")[2]
            return float(total) if total.isdigit() else None
    return None
