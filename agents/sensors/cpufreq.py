"""Processor clocks as cpufreq tells them, their limits, and x86's counters of thermal throttling."""

import os

from .files import Kept, Unavailable, close_all, find, keep, number, read

MAX_POLICIES = 64


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where the kernel shows no clock (most virtual machines)."""
    return CpuFreq(system_root)


def policies(system_root):
    """Return the folders of the cpufreq policies: one for each group of cores that share a clock."""
    found = find(system_root, "/sys/devices/system/cpu/cpufreq/policy*")
    return found or find(system_root, "/sys/devices/system/cpu/cpu[0-9]*/cpufreq")


class CpuFreq:
    """``clock_khz`` (fastest core), ``clock_min_khz``, ``clock_limit_khz``, ``clock_max_khz``, ``throttle_count``.

    The clock is ``scaling_cur_freq``: on x86 measured, on a Raspberry Pi what the kernel asked for, which the firmware
    overrides when it throttles. The ``raspberrypi`` sensor has the real one.
    """

    power = None

    def __init__(self, system_root):
        self._current, self._limits, self._counts, self._package = [], [], [], []
        maxima = []
        folders = policies(system_root)[:MAX_POLICIES]
        for folder in folders:
            try:
                self._current.append(Kept(os.path.join(folder, "scaling_cur_freq")))
            except OSError:
                continue
            limit = keep(os.path.join(folder, "scaling_max_freq"))
            if limit:
                self._limits.append(limit)
            maxima.append(number(read(os.path.join(folder, "cpuinfo_max_freq"))) or 0.0)
        if not self._current:
            raise Unavailable("the kernel shows no cpufreq policy")
        self._maximum = max(maxima)
        for path in find(system_root, "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count")[
            :MAX_POLICIES
        ]:
            self._counts += filter(None, [keep(path)])
        for path in find(system_root, "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"):
            self._package += filter(None, [keep(path)])
        self.detail = "%d policies, up to %d kHz, governor %s" % (
            len(self._current),
            self._maximum,
            read(os.path.join(folders[0], "scaling_governor")) or "unknown",
        )

    def read(self):
        """Return the clocks in kHz and how often the cores have been throttled since boot."""
        values = {}
        clocks = [clock for clock in (file.number() for file in self._current) if clock]
        if clocks:
            values["clock_khz"], values["clock_min_khz"] = max(clocks), min(clocks)
        limits = [limit for limit in (file.number() for file in self._limits) if limit]
        if limits:
            values["clock_limit_khz"] = max(limits)
        if self._maximum:
            values["clock_max_khz"] = self._maximum
        counts = [file.number() for file in self._counts + self._package]
        if counts:
            values["throttle_count"] = sum(count or 0.0 for count in counts)
        return values

    def vendor(self):
        """Nothing: the kernel is all there is to ask."""
        return {}

    def close(self):
        """Close the files."""
        close_all(self._current + self._limits + self._counts + self._package)
