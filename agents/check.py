"""`check`: doctor's findings that need the device, each with the command that mends it where there is one."""

import os
import re
import shlex
import sys

from . import facts as system_facts
from .probe import probe
from .sensors import open_sensors, tool
from .sensors.files import find, under

VENV = "venv"  # below the agent's home
LEAST_DISK = 500 << 20
LEAST_MEMORY = 300 << 20
GIB = float(1 << 30)
BITS_SINCE_BOOT = 16
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (asked about, not written to)
RAPL_FILES = "/sys/class/powercap/intel-rapl:*/energy_uj"
PACKAGES = {
    # The last versions that Python 3.6 and 3.7 can have; newer interpreters take what is current. numpy 1.19.5, which
    # 3.6 could have as well, dies of an illegal instruction on a Jetson (https://github.com/numpy/numpy/issues/18131).
    (3, 6): ["numpy==1.19.4", "onnxruntime==1.10.0"],
    (3, 7): ["numpy", "onnxruntime==1.14.1"],
}


def check(home, system_root):
    """Return {"findings": [...]}, each as ``argus_edge.schema.agent.Finding`` describes."""
    known = probe(system_root, home)
    sensors = open_sensors(["thermal", "cpufreq", "hwmon", "raspberrypi", "jetson"], system_root)
    try:
        readings, vendor = sensors.read(), sensors.vendor()
    finally:
        sensors.close()
    findings = []
    for rule in (python, runtimes, numpy_in_the_way):
        findings += rule(known, home)
    for rule in (emulated, virtual, kill_at_logout, noexec, disk, memory, shared_memory, load, governor, clock_limit):
        findings += rule(known)
    findings += throttling(known, readings)
    findings += power(readings)
    findings += power_mode(vendor.get("jetson", {}))
    findings += permissions(known, vendor, system_root)
    findings += accelerators(known)
    return {"findings": findings}


def good(name, detail):
    """Return a finding that all is well."""
    return [{"check": name, "ok": True, "severity": "info", "detail": detail, "command": None, "privileged": False}]


def bad(name, severity, detail, command=None, privileged=False):
    """Return a finding that something is missing or wrong."""
    finding = {"check": name, "ok": False, "severity": severity, "detail": detail[:2000]}
    return [dict(finding, command=command, privileged=privileged)]


# ---------------------------------------------------------------- Python and runtimes


def python(known, home):
    """Python itself, and the tools to make a virtual environment with."""
    detail = "Python %s, %s" % (known["python"], known["libc"] or "unknown C library")
    findings = good("python", detail)
    usable = any(not fact["error"] for fact in known["runtimes"])
    if usable or system_facts.in_venv() or os.path.exists(venv_python(home)):
        return findings
    if not has_module("ensurepip") or not has_module("venv"):
        return findings + bad(
            "python-venv",
            "error",
            "this Python cannot make virtual environments (Debian and Ubuntu keep that apart)",
            "sudo apt-get install -y python%d.%d-venv python3-pip" % sys.version_info[:2],
            privileged=True,
        )
    return findings


def has_module(name):
    """Return whether a module could be imported."""
    import importlib.util

    return importlib.util.find_spec(name) is not None


def venv_python(home):
    """Return the path of the interpreter in the environment that doctor proposes."""
    return os.path.join(os.path.abspath(os.path.expanduser(home)), VENV, "bin", "python")


def runtimes(known, home):
    """At least one runtime that can be imported; each that is there and cannot."""
    findings = []
    usable = [fact for fact in known["runtimes"] if not fact["error"]]
    for fact in known["runtimes"]:
        if fact["error"] and fact["error"] != "not installed":
            severity = "warning" if usable else "error"
            findings += bad(
                "runtime-" + fact["name"], severity, "%s is installed, and %s" % (fact["name"], fact["error"])
            )
    if usable:
        said = ", ".join("%s %s" % (fact["name"], fact["version"] or "") for fact in usable)
        return good("runtimes", said.strip()) + findings
    inside = venv_python(home)
    if os.path.exists(inside) and not same_file(inside, sys.executable):
        detail = "no runtime in %s, but there is an environment of ours: " % sys.executable
        return bad(
            "python-environment", "error", detail + "`argus-edge device add NAME --python %s --replace`" % inside
        )
    detail = "no runtime can be imported by " + sys.executable
    if known["externally_managed"]:
        detail += "; a plain pip install is blocked here (PEP 668), so an environment of its own is proposed"
    command = install_command(home, sys.version_info[:2], system_facts.in_venv())
    return findings + bad("runtimes", "error", detail, command)


def same_file(one, other):
    """Return whether two interpreters are one environment's: their folders, not where the links lead."""
    return os.path.realpath(os.path.dirname(one)) == os.path.realpath(os.path.dirname(other))


def install_command(home, version, inside):
    """Return the shell command that installs ONNX Runtime: into the running environment, else one below the home."""
    packages = PACKAGES.get(version, ["numpy", "onnxruntime"])
    target = sys.executable if inside else venv_python(home)
    pip = shlex.quote(target) + " -m pip install "
    # pip before 21 does not find the manylinux2014 aarch64 wheels; 21.3.1 is the last for Python 3.6.
    steps = [pip + "pip==21.3.1"] if version < (3, 7) else []
    steps.append(pip + " ".join(packages))
    if not inside:
        made = os.path.dirname(os.path.dirname(target))
        steps.insert(0, "%s -m venv %s" % (shlex.quote(sys.executable), shlex.quote(made)))
    return " && ".join(steps)


def numpy_in_the_way(known, home):
    """tflite_runtime up to 2.14 was built against numpy 1: beside numpy 2 it imports, and then fails."""
    for fact in known["runtimes"]:
        if re.match(r"tflite_runtime \S+ fails beside numpy [2-9]", fact["error"] or ""):
            command = "%s -m pip install 'numpy<2'" % shlex.quote(sys.executable)
            return bad("tflite-numpy", "warning", "tflite_runtime does not work beside numpy 2", command)
    return []


# ---------------------------------------------------------------- the device


def emulated(known):
    """Emulation makes every figure meaningless."""
    return bad("emulated", "warning", known["emulation_detail"]) if known["emulated"] else []


def virtual(known):
    """A virtual machine shares its processor with others."""
    if not known["virtual_machine"]:
        return []
    return good("virtual-machine", "a virtual machine: other guests share its processor, and clocks may not be shown")


def kill_at_logout(known):
    """A detached run may be ended by logind when the login ends."""
    if not known["kill_user_processes"]:
        return []
    if known["linger"]:
        return good("logout", "logind would end processes at logout, but lingering is on for %s" % system_facts.user())
    detail = "logind ends your processes when you log out (KillUserProcesses=yes): a run would not survive a lost link"
    return bad(
        "logout", "error", detail, "sudo loginctl enable-linger " + shlex.quote(system_facts.user()), privileged=True
    )


def noexec(known):
    """A wheel's libraries cannot be loaded from a folder that is mounted noexec."""
    if not known["noexec_home"]:
        return []
    detail = (
        "the agent's home is on a file system mounted noexec: an environment's libraries cannot be loaded from there; "
    )
    return bad(
        "noexec", "warning", detail + "name another folder with `argus-edge device add NAME --home DIR --replace`"
    )


def disk(known):
    """Room for models."""
    free = known["disk_free_bytes"]
    if free >= LEAST_DISK:
        return good("disk", "%.1f GiB free" % (free / GIB))
    return bad(
        "disk",
        "error",
        "%.2f GiB free where models are kept; `argus-edge runs prune --device NAME --yes` clears what runs left"
        % (free / GIB),
    )


def memory(known):
    """Room for a runtime."""
    free, total = known["memory_available_bytes"], known["memory_total_bytes"]
    if free is None:
        return []
    detail = "%.1f of %.1f GiB available" % (free / GIB, (total or 0) / GIB)
    if free >= LEAST_MEMORY:
        return good("memory", detail)
    return bad("memory", "warning", detail + ": a run would swap or be killed; end what else runs")


def shared_memory(known):
    """Samples lie in /dev/shm where that is possible."""
    if os.access(SHARED_MEMORY, os.W_OK):
        return []
    detail = "%s cannot be written to: samples are kept in the agent's home instead" % SHARED_MEMORY
    return bad("shared-memory", "info", detail)


def load(known):
    """Something else that uses the processor."""
    busy, cores = known["load_1m"], known["cores_usable"] or 1
    if busy is None or busy < max(0.5, 0.25 * cores):
        return []
    detail = "load of %.1f on %d cores in the last minute: stop what else runs (`top`), or declare it (--background)"
    return bad("load", "warning", detail % (busy, cores))


def governor(known):
    """A governor that follows the load makes the first calls, and calls after pauses, slower."""
    name, clock = known.get("governor"), known.get("clock_khz") or {}
    # jetson_clocks leaves the governor as it is, and nothing for it to choose from.
    fixed = clock.get("floor") and clock.get("floor") == clock.get("limit")
    if name in (None, "performance") or fixed:
        return good("governor", name) if name else []
    if (known["firmware"] or "").startswith("R"):
        command = "sudo jetson_clocks"
    else:
        command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    detail = (
        "the governor is %s: the clock follows the load, and calls after a pause are slower (until the next boot)"
        % name
    )
    return bad("governor", "warning", detail, command, privileged=True)


def clock_limit(known):
    """A limit below what the hardware can."""
    clock = known.get("clock_khz") or {}
    limit, top = clock.get("limit"), clock.get("max")
    if not limit or not top or limit >= 0.99 * top:
        return []
    detail = "the clock is limited to %.2f of %.2f GHz (scaling_max_freq): by a power mode, a tool, or against heat"
    return bad("clock-limit", "warning", detail % (limit / 1e6, top / 1e6))


def throttling(known, readings):
    """Heat now, and what a Pi's firmware remembers since boot."""
    findings = []
    if readings.get("cooling_state", 0) > 0:
        names = [
            key.partition("/")[2] for key, value in readings.items() if key.startswith("cooling_state/") and value > 0
        ]
        detail = "the kernel slows the processor down now (%s) at %.0f C: let it cool, or cool it better"
        findings += bad(
            "throttled-now", "error", detail % (", ".join(names), readings.get("temperature_c", float("nan")))
        )
    word = int(known["throttle"], 16) if known["throttle"] else 0
    names = dict(system_facts.raspberrypi.THROTTLE_BITS)
    supply = "use the 27 W supply (5 V, 5 A) and a short cable; the mark stays until the next boot"
    heat = (
        "fit the active cooler; the mark stays until the next boot, and throttling in a run cannot be told until then"
    )
    for bit, remedy in ((0, supply), (1, heat), (2, heat), (3, heat)):
        if word >> bit & 1:
            findings += bad(names[bit], "error", "the firmware reports %s now: %s" % (names[bit], remedy))
        elif word >> (bit + BITS_SINCE_BOOT) & 1:
            findings += bad(names[bit], "warning", "the firmware has seen %s since boot: %s" % (names[bit], remedy))
    if known["throttle"] and not word:
        findings += good("throttle", "no under-voltage and no throttling since boot")
    return findings


def power(readings):
    """Alarms of the supply."""
    findings = []
    if readings.get("under_voltage"):
        findings += bad("under-voltage-alarm", "error", "the supply is too weak now: the firmware halves the clock")
    if readings.get("over_current"):
        findings += bad("over-current", "error", "an over-current alarm is on: the clocks are cut until the load falls")
    return findings


def power_mode(jetson):
    """The mode of nvpmodel caps clocks and cores."""
    mode = jetson.get("mode")
    if not mode:
        return []
    if "MAXN" in mode.upper():
        return good("power-mode", mode)
    detail = "power mode %s caps clocks and cores: reports name it (`sudo /usr/sbin/nvpmodel -m ID` changes it)" % mode
    return good("power-mode", detail)


def permissions(known, vendor, system_root):
    """Sensors that are there and that this user may not read."""
    findings = []
    raw = vendor.get("raspberrypi", {}).get("raw", {})
    if raw and "throttled" not in vendor["raspberrypi"]:
        detail = (
            "vcgencmd does not answer (%s): the user needs the group video" % raw.get("get_throttled", "nothing")[:200]
        )
        command = "sudo usermod -aG video " + shlex.quote(system_facts.user())
        findings += bad("vcgencmd", "warning", detail, command, privileged=True)
    if "Raspberry Pi" in (known["model"] or "") and not tool.locate(system_root, "vcgencmd"):
        detail = "no vcgencmd: under-voltage and throttling cannot be told"
        findings += bad("vcgencmd", "warning", detail, "sudo apt-get install -y raspi-utils", privileged=True)
    counters = find(system_root, RAPL_FILES)
    if counters and not any(os.access(path, os.R_OK) for path in counters):
        detail = "the processor's energy counters are readable by root only: no energy in reports"
        findings += bad("rapl", "info", detail, "sudo chmod a+r " + under("/", RAPL_FILES), privileged=True)
    return findings


def accelerators(known):
    """Accelerators that nothing here uses."""
    findings = []
    for name in known["accelerators_unused"]:
        findings += good("accelerator", "%s is there, and is not used: figures are the processor's" % name)
    return findings
