"""Parsers of what NVIDIA's Jetson tools print, L4T 32 to 39. The unknown is left out; callers keep the raw text."""

import re

SIZES = {"kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
MAX_FIELDS = 128


def tegrastats(line):
    """Return the fields of one line of tegrastats.

    Returns
    -------
    dict
        ``ram_used_bytes``, ``ram_total_bytes``, ``swap_used_bytes``, ``swap_total_bytes``, ``cpu`` (load_percent and
        clock_khz for each core, None where it is off), ``gpu_load_percent``, ``gpu_clock_khz`` (list, one for each
        GPC), ``emc_load_percent``, ``emc_clock_khz``, ``temperature_c`` and ``power_w`` and ``power_mean_w`` by name;
        each only where the line has it.
    """
    said = {}
    for key, name in (("ram", "RAM"), ("swap", "SWAP")):
        found = re.search(r"(?<!\w)%s (\d{1,9})/(\d{1,9})(kB|MB|GB)" % name, line)
        if found:
            said[key + "_used_bytes"] = int(found.group(1)) * SIZES[found.group(3)]
            said[key + "_total_bytes"] = int(found.group(2)) * SIZES[found.group(3)]
    # "[12%@1479,off]", or on newer images one clock for all: "[0%,off]@2601".
    found = re.search(r"(?<!\w)CPU \[([^\]]*)\](?:@(\d{1,9}))?", line)
    if found:
        said["cpu"] = [_core(text, found.group(2)) for text in found.group(1).split(",")[:MAX_FIELDS]]
    # The clock is in MHz: one number, or on newer images a list in brackets; load or clock can be missing.
    for key, name in (("emc", "EMC_FREQ"), ("gpu", "GR3D_FREQ")):
        found = re.search(r"(?<!\w)%s (?:(\d{1,9})%%)?(?:@(\d{1,9}|\[[^\]]*\]))?" % name, line)
        if found and found.group(1):
            said[key + "_load_percent"] = int(found.group(1))
        clocks = re.findall(r"\d{1,9}", found.group(2) or "")[:MAX_FIELDS] if found else []
        if clocks:
            said[key + "_clock_khz"] = [int(mhz) * 1000 for mhz in clocks]
    if "emc_clock_khz" in said:
        said["emc_clock_khz"] = said["emc_clock_khz"][0]
    # "cpu@47.8C", from L4T 38 on with the highest since start: "cpu@47.8C/49.1C".
    degrees = re.findall(r"(?<!\S)([\w.-]{1,48})@(-?\d{1,6}(?:\.\d{1,9})?)C(?:/-?[\d.]+C)?(?!\S)", line)[:MAX_FIELDS]
    # A zone that is switched off (CV on Xavier and Orin) reports -256.
    temperatures = {name: float(value) for name, value in degrees if float(value) > -200}
    if temperatures:
        said["temperature_c"] = temperatures
    # "POM_5V_IN 2451/2451" up to L4T 32, "VDD_IN 4123mW/4123mW" after: now and mean; from 38 on a third, the highest.
    pattern = r"(?<!\S)([A-Za-z]\w{0,47}) (\d{1,9})(?:mW)?/(\d{1,9})(?:mW)?(?:/\d{1,9}(?:mW)?)?(?!\S)"
    rails = re.findall(pattern, line)[:MAX_FIELDS]
    if rails:
        said["power_w"] = {name: int(now) / 1000.0 for name, now, _ in rails}
        said["power_mean_w"] = {name: int(mean) / 1000.0 for name, _, mean in rails}
    return said


def _core(text, shared_mhz):
    found = re.match(r"\s*(\d{1,9})%(?:@(\d{1,9}))?\s*$", text)
    if not found:
        return None
    mhz = found.group(2) or shared_mhz
    return {"load_percent": int(found.group(1)), "clock_khz": int(mhz) * 1000 if mhz else None}


def nvpmodel(text):
    """Return ``mode`` (name), ``mode_id`` and ``fan_mode`` from ``nvpmodel -q``; each only where the text has it."""
    said = {}
    found = re.search(r"NV Power Mode\s*:\s*(\S{1,64})", text)
    if found:
        said["mode"] = found.group(1)
    found = re.search(r"NV Fan Mode\s*:\s*(\S{1,64})", text)
    if found:
        said["fan_mode"] = found.group(1)
    numbers = [line.strip() for line in text.splitlines() if re.match(r"\s*\d{1,4}\s*$", line)]
    if numbers:
        said["mode_id"] = int(numbers[-1])
    return said
