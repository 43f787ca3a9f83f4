"""Energy counters of x86 processors (RAPL, through the kernel's powercap; AMD's too)."""

import os
import time

from .files import Kept, Unavailable, close_all, find, number, read


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where there is no counter, or only root may read it."""
    return Rapl(system_root)


class Rapl:
    """``energy_j`` (all packages), ``energy_j/<domain>``, ``power_w`` (packages, mean since the reading before)."""

    power = ("RAPL", "the processor packages; leaves out memory, board, disks and power supply")

    def __init__(self, system_root):
        self._domains = []
        refused = None
        for folder in find(system_root, "/sys/class/powercap/intel-rapl:*"):
            label = read(os.path.join(folder, "name"))
            if folder.count(":") > 1 and label:
                parent = read(os.path.join(folder.rpartition(":")[0], "name"))
                label = "%s.%s" % (parent or "package", label)
            try:
                file = Kept(os.path.join(folder, "energy_uj"))
            except OSError as error:
                refused = error
                continue
            self._domains.append(Counter(label, file, number(read(os.path.join(folder, "max_energy_range_uj"))) or 0.0))
        if not any(domain.is_package for domain in self._domains):
            close_all(domain.file for domain in self._domains)
            raise Unavailable(
                "energy counters are readable by root only" if refused else "no RAPL domain in /sys/class/powercap"
            )
        self._before = None
        self.detail = "domains: " + ", ".join(domain.label for domain in self._domains)

    def read(self):
        """Return joules since the first reading, and watts since the one before."""
        values, packages = {}, 0.0
        now = time.perf_counter()
        for domain in self._domains:
            joules = domain.joules()
            if joules is None:
                return {}
            values["energy_j/" + domain.label] = joules
            packages += joules if domain.is_package else 0.0
        values["energy_j"] = packages
        if self._before and now > self._before[0]:
            values["power_w"] = (packages - self._before[1]) / (now - self._before[0])
        self._before = (now, packages)
        return values

    def vendor(self):
        """Nothing: the kernel is all there is to ask."""
        return {}

    def close(self):
        """Close the files."""
        close_all(domain.file for domain in self._domains)


class Counter:
    """One domain's counter, which wraps at ``span`` microjoules (minutes on a busy server)."""

    def __init__(self, label, file, span):
        self.label, self.file, self._span = label, file, span
        self.is_package = label.startswith("package") and "." not in label
        self._last, self._turns, self._first = None, 0, None

    def joules(self):
        """Return the energy since the first call, or None where the counter cannot be read."""
        micro = self.file.number()
        if micro is None:
            return None
        if self._last is None:
            self._first = micro
        elif micro < self._last:
            self._turns += 1
        self._last = micro
        return (micro - self._first + self._turns * self._span) * 1e-6
