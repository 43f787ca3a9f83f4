"""Alarms of hwmon that cost one small read: the Raspberry Pi's under-voltage."""

import os

from .files import Kept, Unavailable, close_all, find, read


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where no chip has such an alarm."""
    return Hwmon(system_root)


class Hwmon:
    """``under_voltage``: 1 while the supply is too weak. The rpi_volt driver asks the firmware every two seconds."""

    power = None

    def __init__(self, system_root):
        self._alarms = []
        for folder in find(system_root, "/sys/class/hwmon/hwmon*"):
            if read(os.path.join(folder, "name")) == "rpi_volt":
                self._alarms.append(Kept(os.path.join(folder, "in0_lcrit_alarm")))
        if not self._alarms:
            raise Unavailable("no rpi_volt chip in hwmon")
        self.detail = "rpi_volt: under-voltage alarm"

    def read(self):
        """Return whether an alarm is on, 0 or 1."""
        states = [state for state in (alarm.number() for alarm in self._alarms) if state is not None]
        return {"under_voltage": max(states)} if states else {}

    def vendor(self):
        """Nothing: the kernel is all there is to ask."""
        return {}

    def close(self):
        """Close the files."""
        close_all(self._alarms)
