"""Raspberry Pi 5: power of the PMIC's rails, read by vcgencmd while the load runs; for a separate, labelled pass."""

from . import raspberrypi, tool
from .files import Unavailable


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where vcgencmd is missing or knows no rails (a Pi before the 5)."""
    return Pmic(system_root)


class Pmic:
    """``power_w`` and ``power_w/<rail>``. Each reading starts a process: latencies of such a pass do not count."""

    power = ("vcgencmd pmic_read_adc", "the PMIC's output rails; leaves out the 5 V input's losses, USB, fan and HATs")

    def __init__(self, system_root):
        self._vcgencmd = tool.locate(system_root, "vcgencmd")
        if not self._vcgencmd:
            raise Unavailable("no vcgencmd (apt package raspi-utils or libraspberrypi-bin)")
        names = sorted(self._ask().get("rails", {}))
        if not names:
            raise Unavailable("vcgencmd pmic_read_adc gives no rails: only a Raspberry Pi 5 has them")
        self.detail = "rails: " + ", ".join(names)

    def _ask(self):
        return raspberrypi.rails(tool.run([self._vcgencmd, "pmic_read_adc"]) or "")

    def read(self):
        """Return the power of each rail and their sum, watts."""
        said = self._ask()
        values = {}
        for name, rail in said.get("rails", {}).items():
            if len(rail) == 2:
                values["power_w/" + name] = rail["current_a"] * rail["voltage_v"]
        if "power_w" in said:
            values["power_w"] = said["power_w"]
        return values

    def vendor(self):
        """Nothing: ``raspberrypi`` says it."""
        return {}

    def close(self):
        """Nothing is open."""
