"""Raspberry Pi: what the firmware says through vcgencmd, between the windows only (a call disturbs the load)."""

import re

from . import tool
from .files import Unavailable, find, read

# vcgencmd get_throttled: bit -> meaning; the same 16 bits higher says "since boot".
# https://www.raspberrypi.com/documentation/computers/os.html#get_throttled
THROTTLE_BITS = ((0, "under-voltage"), (1, "frequency-capped"), (2, "throttled"), (3, "soft-temperature-limit"))
SINCE_BOOT = 16
RAIL = r"(?<!\w)(\w{1,48})_[AV]\s+(current|volt)\(\d{1,4}\)=(-?\d{1,6}(?:\.\d{1,9})?)[AV]"
MAX_RAILS = 64
FIRMWARE_FILE = "/sys/devices/platform/*/*:firmware/get_throttled"


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where there is no vcgencmd and no firmware file."""
    return RaspberryPi(system_root)


class RaspberryPi:
    """Throttle word, real Arm clock, temperature, core voltage and the PMIC's rails; nothing within a window."""

    power = None

    def __init__(self, system_root):
        self._vcgencmd = tool.locate(system_root, "vcgencmd")
        self._files = find(system_root, FIRMWARE_FILE)
        if not self._vcgencmd and not self._files:
            raise Unavailable("no vcgencmd (apt package raspi-utils or libraspberrypi-bin)")
        self.detail = self._vcgencmd or self._files[0]

    def read(self):
        """Nothing: a vcgencmd call costs the load that is timed; ``hwmon`` has the under-voltage alarm."""
        return {}

    def vendor(self):
        """Return what the firmware says: parsed where it is understood, and the raw text."""
        if not self._vcgencmd:
            raw = {"get_throttled": "throttled=0x" + read(self._files[0])}
            return dict(throttled(raw["get_throttled"]), raw=raw)
        raw = {}
        for question in ("get_throttled", "measure_clock arm", "measure_temp", "measure_volts core", "pmic_read_adc"):
            answer = tool.run([self._vcgencmd] + question.split())
            if answer is not None:
                raw[question] = answer.strip()[:8192]
        said = throttled(raw.get("get_throttled", ""))
        for key, question, pattern, factor in (
            ("clock_khz", "measure_clock arm", r"frequency\(\d{1,4}\)=(\d{1,12})\b", 1e-3),
            ("temperature_c", "measure_temp", r"temp=(-?\d{1,4}(?:\.\d{1,6})?)'C", 1.0),
            ("core_v", "measure_volts core", r"volt=(\d{1,4}(?:\.\d{1,9})?)V", 1.0),
        ):
            found = re.search(pattern, raw.get(question, ""))
            if found:
                said[key] = float(found.group(1)) * factor
        said.update(rails(raw.get("pmic_read_adc", "")))
        said["raw"] = raw
        return said

    def close(self):
        """Nothing is open."""


def throttled(text):
    """Return the throttle word and its bits' names from ``throttled=0x50005``; {} where the text is something else.

    The bits since boot are not "during the run": compare the words before and after it.
    """
    found = re.search(r"throttled=(?:0x)?([0-9a-fA-F]{1,8})\b", text)
    if not found:
        return {}
    word = int(found.group(1), 16)
    return {
        "throttled": word,
        "throttled_now": [name for bit, name in THROTTLE_BITS if word >> bit & 1],
        "throttled_since_boot": [name for bit, name in THROTTLE_BITS if word >> bit + SINCE_BOOT & 1],
    }


def rails(text):
    """Return the PMIC's rails and the sum of volts times amperes over those that have both, from ``pmic_read_adc``.

    ``EXT5V_V`` (the input) and ``BATT_V`` have no current beside them: the sum leaves out what is lost before the
    PMIC's outputs, and everything that hangs on 5 V directly (USB, fan, HAT).
    """
    found = {}
    for name, quantity, value in re.findall(RAIL, text)[: MAX_RAILS * 2]:
        found.setdefault(name, {})["current_a" if quantity == "current" else "voltage_v"] = float(value)
    if not found:
        return {}
    said = {"rails": found}
    both = [rail for rail in found.values() if len(rail) == 2]
    if both:
        said["power_w"] = sum(rail["current_a"] * rail["voltage_v"] for rail in both)
    return said
