"""Temperatures and cooling devices of the Linux thermal framework; the processor's hwmon where there are no zones."""

import os
import re

from .files import Kept, Unavailable, close_all, find, read

# Zones of the processor, by the names that kernels and vendors give them.
PROCESSOR = re.compile(r"cpu|gpu|soc|x86_pkg|core|k10|zen|^tj|^ao-|^pll|bcm|package", re.IGNORECASE)
# A power chip that reports a constant 100 C, an estimate for the fan, and things beside the processor.
OTHER = re.compile(r"pmic|fan|batt|wifi|nvme|ambient|charger", re.IGNORECASE)
PROCESSOR_HWMON = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
# Cooling devices that act by slowing the processor down; fans do not.
SLOWING = re.compile(r"cpu|gpu|devfreq|processor|balanced|powerclamp|throttle", re.IGNORECASE)
PLAUSIBLE_C = (-40.0, 150.0)


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where the kernel shows no temperature."""
    return Thermal(system_root)


class Thermal:
    """``temperature_c`` (the processor's hottest), ``temperature_c/<zone>``, ``cooling_state`` and each device's."""

    power = None

    def __init__(self, system_root):
        self._zones = list(_zones(system_root))
        if not any(PROCESSOR.search(label) and not OTHER.search(label) for label, _ in self._zones):
            self._zones += list(_hwmon(system_root))
        if not self._zones:
            raise Unavailable("no thermal zone and no processor temperature in hwmon")
        labels = [label for label, _ in self._zones if not OTHER.search(label)]
        self._headline = {label for label in labels if PROCESSOR.search(label)} or set(labels)
        self._cooling = list(_cooling(system_root))
        self.detail = "zones: %s; cooling: %s" % (
            ", ".join(label for label, _ in self._zones),
            ", ".join(label for label, _ in self._cooling) or "none that slows the processor",
        )

    def read(self):
        """Return the temperatures in degrees Celsius and the states of the cooling devices (0 is idle)."""
        values = {}
        hottest = None
        for label, file in self._zones:
            milli = file.number()
            if milli is None or not PLAUSIBLE_C[0] <= milli / 1000.0 <= PLAUSIBLE_C[1]:
                continue
            values["temperature_c/" + label] = milli / 1000.0
            if label in self._headline:
                hottest = max(milli / 1000.0, PLAUSIBLE_C[0] if hottest is None else hottest)
        if hottest is not None:
            values["temperature_c"] = hottest
        states = {}
        for label, file in self._cooling:
            state = file.number()
            if state is not None and state >= 0:
                states["cooling_state/" + label] = state
        if states:
            values["cooling_state"] = max(states.values())
            values.update(states)
        return values

    def vendor(self):
        """Nothing: the kernel is all there is to ask."""
        return {}

    def close(self):
        """Close the files."""
        close_all(file for _, file in self._zones + self._cooling)


def _labelled(candidates):
    """Iterate over (label, kept file), the label made unique; a file that cannot be opened is passed over."""
    seen = {}
    for label, path in candidates:
        try:
            file = Kept(path)
        except OSError:
            continue
        label = re.sub(r"[^\w.+-]", "_", label)[:48] or "unnamed"
        seen[label] = seen.get(label, 0) + 1
        yield label if seen[label] == 1 else "%s.%d" % (label, seen[label]), file


def _zones(system_root):
    folders = find(system_root, "/sys/class/thermal/thermal_zone*")
    return _labelled((read(os.path.join(folder, "type")), os.path.join(folder, "temp")) for folder in folders)


def _cooling(system_root):
    folders = find(system_root, "/sys/class/thermal/cooling_device*")
    named = ((read(os.path.join(folder, "type")), os.path.join(folder, "cur_state")) for folder in folders)
    return _labelled((kind, path) for kind, path in named if SLOWING.search(kind) and not OTHER.search(kind))


def _hwmon(system_root):
    for folder in find(system_root, "/sys/class/hwmon/hwmon*"):
        name = read(os.path.join(folder, "name"))
        if name not in PROCESSOR_HWMON:
            continue
        inputs = find("/", os.path.join(folder, "temp*_input"))
        # coretemp lists every core after the package; the package alone is the headline and enough.
        for path in inputs[:1]:
            for pair in _labelled([(name, path)]):
                yield pair
