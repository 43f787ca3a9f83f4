"""Sensors: what the supervisor reads beside a timed window. A new kind is a new module and one line here.

``docs/sensors.md`` lists every value that a reading may hold, with its unit and what it covers.

A sensor's module has ``open_sensor(system_root)``, which raises ``Unavailable`` where this device gives nothing, and
returns an object with

- ``detail``: what was found, one line for ``device probe``;
- ``power``: None, or (source, coverage) of the ``power_w`` and ``energy_j`` that ``read`` gives;
- ``read()``: a dict of name -> float; cheap, on descriptors that stay open; a value that cannot be had now is left out;
- ``vendor()``: a dict of what slow tools say, for between the windows only; their raw text is kept under ``raw``;
- ``close()``.
"""

from importlib import import_module

from .files import Unavailable

MODULES = {
    "thermal": "thermal",
    "cpufreq": "cpufreq",
    "raspberrypi": "raspberrypi",
    "pmic": "pmic",
    "jetson": "jetson",
    "rapl": "rapl",
    "nvml": "nvml",
    "hwmon": "hwmon",
    "memory": "memory",
}
# The device's power and energy are one sensor's: figures of two never mix.
OWNED = ("power_w", "energy_j")


class Sensors:
    """Several sensors as one. Where two give the same value, the one named first counts.

    Attributes
    ----------
    missing
        Name -> why this device has no such sensor.
    power
        (sensor, source, coverage) of ``power_w``, or None.
    """

    def __init__(self, names, system_root="/"):
        self._opened = []
        self.missing = {}
        self.power = None
        for name in names:
            if name not in MODULES:
                self.missing[name] = "this agent has no such sensor"
                continue
            try:
                sensor = import_module("." + MODULES[name], __name__).open_sensor(system_root)
            except (Unavailable, OSError, ImportError) as reason:  # a small Python may lack ctypes
                self.missing[name] = str(reason)
                continue
            self._opened.append((name, sensor))
            if sensor.power and not self.power:
                self.power = (name,) + sensor.power

    def read(self):
        """Return the values of all sensors. Safe beside a timed window."""
        values = {}
        for name, sensor in self._opened:
            for key, value in sensor.read().items():
                # A sensor that could not tell its power when it was opened may well tell it later.
                if key not in OWNED or (self.power and self.power[0] == name):
                    values.setdefault(key, value)
        return values

    def vendor(self):
        """Return what the vendors' tools say, by sensor; ``energy`` says what ``power_w`` is. Never within a window."""
        said = {}
        for name, sensor in self._opened:
            told = sensor.vendor()
            if told:
                said[name] = told
        if self.power:
            said["energy"] = {"sensor": self.power[0], "source": self.power[1], "coverage": self.power[2]}
        return said

    def facts(self):
        """Return name, availability and detail of each sensor that was asked for: ``DeviceFacts.sensors``."""
        facts = [{"name": name, "available": True, "detail": sensor.detail[:2000]} for name, sensor in self._opened]
        facts += [{"name": name, "available": False, "detail": why[:2000]} for name, why in self.missing.items()]
        return facts

    def close(self):
        """Close every descriptor."""
        for _, sensor in self._opened:
            sensor.close()
        self._opened = []


def open_sensors(names, system_root="/"):
    """Return the named sensors as one; those that this device does not have are in its ``missing``.

    Parameters
    ----------
    names
        Keys of ``MODULES``, as a profile lists them.
    system_root
        Prefix of everything that is read or called: a recorded tree in tests.
    """
    return Sensors(names, system_root)
