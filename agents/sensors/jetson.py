"""NVIDIA Jetson: INA3221 power monitors in each kernel's layout, GPU clock and load, over-current, vendor's tools."""

import os
import re

from . import tegrastats, tool
from .files import Kept, Unavailable, close_all, find, keep, read

# JetPack 4 (kernel 4.9): NVIDIA's own driver, an IIO device with rail_name_N and in_powerN_input (mW).
IIO = ("/sys/bus/i2c/drivers/ina3221x/*/iio:device*", "/sys/bus/i2c/devices/*/iio:device*")
# JetPack 5 and newer: the kernel's hwmon driver, with inN_label, inN_input (mV) and currN_input (mA).
HWMON = (
    "/sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*",
    "/sys/bus/i2c/devices/*/hwmon/hwmon*",
    "/sys/class/hwmon/hwmon*",
)
# The rail that feeds the whole module, in order of preference.
INPUT_RAILS = ("VDD_IN", "POM_5V_IN")
GPU_DEVFREQ = re.compile(r"(gpu|gv11b|ga10b|gp10b|gb10b|gpc)", re.IGNORECASE)
GPU_LOAD = ("/sys/devices/gpu.0/load", "/sys/devices/platform/gpu.0/load", "/sys/class/devfreq/*gpu*/device/load")
# Counts of throttling by over-current, where the kernel has them (JetPack 5 and newer).
OVER_CURRENT = "/sys/class/hwmon/hwmon*/oc[0-9]*_event_cnt"


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where this is no Jetson."""
    return Jetson(system_root)


class Jetson:
    """Power of the module and its rails, the GPU's clock and load, over-current alarms and events."""

    def __init__(self, system_root):
        self._rails = iio_rails(system_root) or hwmon_rails(system_root)
        self._gpu = {}
        for folder in find(system_root, "/sys/class/devfreq/*"):
            if GPU_DEVFREQ.search(os.path.basename(folder)) and "gpu_clock_khz" not in self._gpu:
                for key, name in (("gpu_clock_khz", "cur_freq"), ("gpu_clock_limit_khz", "max_freq")):
                    file = keep(os.path.join(folder, name))
                    if file:
                        self._gpu[key] = file
        loads = [path for pattern in GPU_LOAD for path in find(system_root, pattern)]
        self._load = keep(loads[0]) if loads else None
        self._events = [file for file in map(keep, find(system_root, OVER_CURRENT)) if file]
        self._tegrastats = tool.locate(system_root, "tegrastats")
        self._nvpmodel = tool.locate(system_root, "nvpmodel")
        if not (self._rails or self._gpu or self._tegrastats):
            raise Unavailable("no INA3221, no GPU clock and no tegrastats: not a Jetson, or its files are not readable")
        self._input = next((name for name in INPUT_RAILS if any(rail.name == name for rail in self._rails)), None)
        self.power = _coverage(self._input, self._rails)
        self.detail = "rails: %s; GPU: %s" % (
            ", ".join(rail.name for rail in self._rails) or "none",
            ", ".join(sorted(self._gpu)) or "no clock",
        )

    def read(self):
        """Return watts, kHz, per cent, and whether and how often over-current cut the clocks."""
        values, alarms = {}, []
        for rail in self._rails:
            watts = rail.watts()
            if watts is not None:
                values["power_w/" + rail.name] = watts
            alarms += rail.alarms()
        if self._input:
            total = values.get("power_w/" + self._input)
        else:
            known = list(values.values())
            total = sum(known) if known and len(known) == len(self._rails) else None
        if total is not None:
            values["power_w"] = total
        if alarms:
            values["over_current"] = max(alarms)
        events = [count for count in (file.number() for file in self._events) if count is not None]
        if events:
            values["over_current_events"] = sum(events)
        for key, file in self._gpu.items():
            hertz = file.number()
            if hertz:
                values[key] = hertz * 1e-3
        load = self._load.number() if self._load else None
        if load is not None:
            values["gpu_load_percent"] = load / 10.0
        return values

    def vendor(self):
        """Return nvpmodel's mode and a line of tegrastats, parsed and raw."""
        said, raw = {}, {}
        if self._nvpmodel:
            raw["nvpmodel"] = (tool.run([self._nvpmodel, "-q"]) or "").strip()[:4096]
            said.update(tegrastats.nvpmodel(raw["nvpmodel"]))
        if self._tegrastats:
            raw["tegrastats"] = (tool.run([self._tegrastats, "--interval", "100"], first_line=True) or "").strip()[
                :4096
            ]
            said["tegrastats"] = tegrastats.tegrastats(raw["tegrastats"])
        if raw:
            said["raw"] = raw
        return said

    def close(self):
        """Close the files."""
        for rail in self._rails:
            rail.close()
        close_all(list(self._gpu.values()) + self._events + ([self._load] if self._load else []))


class Rail:
    """One channel of a power monitor: its power in mW directly, or millivolts and milliamperes; over-current alarms."""

    def __init__(self, name, milliwatts=None, millivolts=None, milliamperes=None, alarms=()):
        self.name = re.sub(r"[^\w.+-]", "_", name)[:48]
        self._milliwatts, self._millivolts, self._milliamperes, self._alarms = (
            milliwatts,
            millivolts,
            milliamperes,
            alarms,
        )

    def watts(self):
        """Return the power, or None where it cannot be read now."""
        if self._milliwatts:
            milliwatts = self._milliwatts.number()
            return None if milliwatts is None else milliwatts * 1e-3
        millivolts, milliamperes = self._millivolts.number(), self._milliamperes.number()
        return None if millivolts is None or milliamperes is None else millivolts * milliamperes * 1e-6

    def alarms(self):
        """Return the states of the over-current alarms."""
        return [state for state in (file.number() for file in self._alarms) if state is not None]

    def close(self):
        """Close the files."""
        close_all(filter(None, [self._milliwatts, self._millivolts, self._milliamperes]))
        close_all(self._alarms)


def iio_rails(system_root):
    """Return the rails of NVIDIA's own INA3221 driver (JetPack 4)."""
    rails = []
    for folder in _folders(system_root, IIO):
        for path in find("/", os.path.join(folder, "rail_name_*")):
            channel, name = path.rpartition("_")[2], read(path)
            power = keep(os.path.join(folder, "in_power%s_input" % channel))
            if power and name and name != "NC":
                rails.append(Rail(name, milliwatts=power))
            elif power:
                power.close()
    return rails


def hwmon_rails(system_root):
    """Return the rails of the kernel's INA3221 driver (JetPack 5 and newer)."""
    rails = []
    for folder in _folders(system_root, HWMON):
        if read(os.path.join(folder, "name")) != "ina3221":
            continue
        for path in find("/", os.path.join(folder, "in*_label")):
            channel, name = os.path.basename(path)[2:-6], read(path)
            # "sum of shunt voltages" is no rail, NC is not connected, and a channel may be switched off.
            if (
                not name
                or name == "NC"
                or "sum of" in name
                or read(os.path.join(folder, "in%s_enable" % channel)) == "0"
            ):
                continue
            try:
                volts = Kept(os.path.join(folder, "in%s_input" % channel))
                amperes = Kept(os.path.join(folder, "curr%s_input" % channel))
            except OSError:
                continue
            alarms = [keep(os.path.join(folder, "curr%s_%s_alarm" % (channel, kind))) for kind in ("max", "crit")]
            rails.append(Rail(name, None, volts, amperes, [alarm for alarm in alarms if alarm]))
    return rails


def _folders(system_root, patterns):
    """Return the folders that any of the patterns matches, each once: one device is reached by several links."""
    found = {}
    for pattern in patterns:
        for folder in find(system_root, pattern):
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def _coverage(input_rail, rails):
    if not rails:
        return None
    if input_rail:
        return "INA3221 " + input_rail, "the module's 5 V input; leaves out the carrier board's own supply and devices"
    names = " + ".join(rail.name for rail in rails)
    return "INA3221 " + names, "the sum of the measured rails %s; leaves out what hangs on others" % names
