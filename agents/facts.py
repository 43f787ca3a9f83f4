"""What a device is: board, image, processor, memory, disk, and whether it is real. Unknown is None, never guessed."""

import math
import os
import re
import struct
import sys

from .sensors import cpufreq, memory, raspberrypi, tegrastats, tool
from .sensors.files import find, number, read, under

# ELF e_machine by what uname says: a 32-bit userland on a 64-bit kernel is not emulation.
MACHINES = {"x86_64": {62, 3}, "i686": {3}, "aarch64": {183, 40}, "armv7l": {40}, "armv8l": {40}, "riscv64": {243}}
MACHINE_NAMES = {62: "x86-64", 3: "x86", 183: "aarch64", 40: "arm", 243: "riscv"}
# MIDR part numbers of the cores that boards have, by implementer (Arm, NVIDIA); /proc/cpuinfo gives no names on Arm.
PARTS = {
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd04"): "Cortex-A35",
    ("0x41", "0xd05"): "Cortex-A55",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0b"): "Cortex-A76",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd83"): "Neoverse-V3AE",
    ("0x4e", "0x004"): "Carmel",
}
VIRTUAL = re.compile(r"qemu|kvm|vmware|virtualbox|bochs|xen|virtual machine|google compute|amazon|hvm", re.I)
# Accelerators that no runtime of ours uses: PCI vendor -> name.
ACCELERATORS = {"0x1e60": "Hailo AI accelerator", "0x1ac1": "Google Coral Edge TPU"}
DEVICE_TREE = "/sys/firmware/devicetree/base/"


def facts(system_root, home):
    """Return the facts that files and the kernel tell, as ``argus_edge.schema.agent.DeviceFacts`` names them."""
    sizes = memory.meminfo(read(under(system_root, "/proc/meminfo")))
    why = emulation(system_root)
    processor, features = cpu(system_root)
    found = {
        "hostname": os.uname().nodename[:128],
        "model": model(system_root),
        "arch": os.uname().machine,
        "emulated": bool(why),
        "emulation_detail": why,
        "virtual_machine": virtual_machine(system_root, features),
        "os": os_release(system_root),
        "kernel": os.uname().release,
        "firmware": firmware(system_root),
        "libc": libc(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "python_executable": sys.executable,
        "externally_managed": externally_managed(),
        "boot_id": read(under(system_root, "/proc/sys/kernel/random/boot_id"))[:64] or None,
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "cpu_model": processor,
        "cpu_features": features,
        "cores": os.cpu_count(),
        "cores_usable": cores_usable(system_root),
        "memory_total_bytes": _whole(sizes.get("MemTotal")),
        "memory_available_bytes": _whole(sizes.get("MemAvailable")),
        "swap_total_bytes": _whole(sizes.get("SwapTotal")),
        "power_mode": power_mode(system_root),
        "throttle": throttle(system_root),
        "accelerators_unused": accelerators(system_root),
        "linger": linger(system_root),
        "kill_user_processes": kill_user_processes(system_root),
        "load_1m": number(read(under(system_root, "/proc/loadavg"))),
    }
    found.update(clocks(system_root))
    found.update(disk(home))
    return found


def _whole(value):
    return None if value is None else int(value)


def device_tree(system_root, name):
    """Return a text of the device tree, or ""."""
    return read(under(system_root, DEVICE_TREE + name)) or read(under(system_root, "/proc/device-tree/" + name))


def model(system_root):
    """Return the board's name: the device tree's, or the DMI's maker and product."""
    if device_tree(system_root, "model"):
        return device_tree(system_root, "model")[:256]
    return dmi(system_root, "sys_vendor", "product_name") or None


def dmi(system_root, *names):
    """Return fields of the DMI that are there, with blanks between."""
    words = [read(under(system_root, "/sys/class/dmi/id/" + name)) for name in names]
    return " ".join(word for word in words if word)[:256]


def emulation(system_root):
    """Return why this is an emulation (qemu-user), or None.

    Under qemu-user ``/proc/self/exe`` is faked, but ``/proc/thread-self/exe`` is the emulator itself: an ELF file of
    another machine than uname's.
    """
    machine, path = os.uname().machine, under(system_root, "/proc/thread-self/exe")
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF" or machine not in MACHINES:
        return None
    found = struct.unpack(">H" if head[5] == 2 else "<H", head[18:20])[0]
    if found in MACHINES[machine]:
        return None
    return "uname says %s, but this process is an %s program (qemu-user?): no time measured here means anything" % (
        machine,
        MACHINE_NAMES.get(found, "ELF machine %d" % found),
    )


def virtual_machine(system_root, features):
    """Return whether this is a virtual machine; None where nothing tells."""
    if "hypervisor" in features or read(under(system_root, "/sys/hypervisor/type")):
        return True
    identity = dmi(system_root, "sys_vendor", "product_name")
    if VIRTUAL.search(identity):
        return True
    return False if identity or device_tree(system_root, "model") else None


def os_release(system_root):
    """Return PRETTY_NAME of os-release, or None."""
    text = read(under(system_root, "/etc/os-release")) or read(under(system_root, "/usr/lib/os-release"))
    found = re.search(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", text, re.MULTILINE)
    return found.group(1)[:256] if found else None


def firmware(system_root):
    """Return firmware and image: L4T's release (``R36.4.3``), a Pi's VideoCore, EEPROM and image, or the BIOS."""
    text = read(under(system_root, "/etc/nv_tegra_release"))
    found = re.search(r"R(\d+)\s*\(release\),\s*REVISION:\s*([\d.]+)", text)
    if found:
        return "R%s.%s" % found.groups()
    parts = []
    vcgencmd = tool.locate(system_root, "vcgencmd")
    if vcgencmd:
        for name, question in (("VideoCore", "version"), ("EEPROM", "bootloader_version")):
            first = (tool.run([vcgencmd, question]) or "").strip().split("\n")[0].strip()
            # A date; anything else is an error's text.
            if re.match(r"(\d{4}|[A-Z][a-z]{2} )", first):
                parts.append("%s %s" % (name, first[:80]))
    image = read(under(system_root, "/etc/rpi-issue")).split("\n")[0]
    if image:
        parts.append("image " + image[:120])
    if not parts:
        parts = [dmi(system_root, "bios_vendor", "bios_version", "bios_date")]
    return "; ".join(parts) or None


def libc():
    """Return the C library (``glibc 2.36``), or None where it does not say."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def in_venv():
    """Return whether the interpreter is a virtual environment's."""
    return sys.prefix != getattr(sys, "base_prefix", sys.prefix)


def externally_managed():
    """Return whether a plain ``pip install`` is blocked (PEP 668)."""
    import sysconfig

    if in_venv():
        return False
    return os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


def cpu(system_root):
    """Return the processor's name (Arm: the names of its cores) and its features."""
    fields = {}
    for line in read(under(system_root, "/proc/cpuinfo"), 1 << 20).splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), []).append(value.strip())
    features = (fields.get("flags") or fields.get("Features") or [""])[0].split()
    if fields.get("model name"):
        return fields["model name"][0][:256], features[:1024]
    named = []
    for pair in zip(fields.get("CPU implementer", []), fields.get("CPU part", [])):
        name = PARTS.get(pair, "implementer %s part %s" % pair)
        if name not in named:
            named.append(name)
    return " + ".join(named)[:256] or None, features[:1024]


def cores_usable(system_root):
    """Return the cores that this process may use: its affinity, and its cgroup's quota rounded up."""
    count = len(os.sched_getaffinity(0))
    for line in read(under(system_root, "/proc/self/cgroup")).splitlines():
        _, controllers, path = (line + "::").split(":", 2)
        path = path.rstrip(":")
        if not controllers:
            names = ["/sys/fs/cgroup%s/cpu.max" % path]
        elif "cpu" in controllers.split(","):
            names = ["/sys/fs/cgroup/cpu%s/cpu.cfs_%s_us" % (path, name) for name in ("quota", "period")]
        else:
            continue
        quota = [number(word) for name in names for word in read(under(system_root, name)).split()]
        if len(quota) == 2 and quota[0] and quota[1] and quota[0] > 0:
            count = min(count, max(1, math.ceil(quota[0] / quota[1])))
    return count


def clocks(system_root):
    """Return the governor and the clocks (kHz) of the fastest CPU."""
    best = {}
    for folder in cpufreq.policies(system_root):
        names = {
            "min": "cpuinfo_min_freq",
            "max": "cpuinfo_max_freq",
            "current": "scaling_cur_freq",
            "floor": "scaling_min_freq",
            "limit": "scaling_max_freq",
        }
        found = {key: number(read(os.path.join(folder, name))) for key, name in names.items()}
        if not best or (found["max"] or 0) > (best["clock_khz"]["max"] or 0):
            clock = {key: _whole(value) for key, value in found.items()}
            best = {"governor": read(os.path.join(folder, "scaling_governor"))[:64] or None, "clock_khz": clock}
    return best


def disk(home):
    """Return the free bytes where the agent's home is (or will be), and whether programs may not be run from there."""
    folder = os.path.abspath(os.path.expanduser(home))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    told = os.statvfs(folder)
    return {"disk_free_bytes": told.f_bavail * told.f_frsize, "noexec_home": bool(told.f_flag & os.ST_NOEXEC)}


def power_mode(system_root):
    """Return nvpmodel's mode, or None."""
    path = tool.locate(system_root, "nvpmodel")
    return tegrastats.nvpmodel(tool.run([path, "-q"]) or "").get("mode") if path else None


def throttle(system_root):
    """Return a Raspberry Pi's throttle word (``0x50000``), or None."""
    path = tool.locate(system_root, "vcgencmd")
    said = raspberrypi.throttled(tool.run([path, "get_throttled"]) or "") if path else {}
    return "0x%x" % said["throttled"] if said else None


def accelerators(system_root):
    """Return the accelerators that are there and that nothing of ours uses."""
    found = []
    for path in find(system_root, "/sys/bus/pci/devices/*/vendor"):
        name = ACCELERATORS.get(read(path))
        if name and name not in found:
            found.append(name)
    if not found and find(system_root, "/dev/hailo*"):
        found.append(ACCELERATORS["0x1e60"])
    return found


def user():
    """Return the user's name, or the number where there is no name."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def linger(system_root):
    """Return whether the user's processes may stay after logout (loginctl enable-linger); None without logind."""
    if not os.path.isdir(under(system_root, "/run/systemd/system")):
        return None
    return os.path.exists(under(system_root, "/var/lib/systemd/linger/" + user()))


def kill_user_processes(system_root):
    """Return whether logind ends a user's processes at logout; None where there is no logind or it cannot be told.

    The bus knows; else the last setting in logind.conf and its drop-ins counts, and without one the commented default,
    which each distribution sets to what it was built with.
    """
    if os.path.realpath(system_root) == "/" and tool.locate("/", "busctl"):
        argv = [tool.locate("/", "busctl"), "get-property", "org.freedesktop.login1", "/org/freedesktop/login1"]
        said = (tool.run(argv + ["org.freedesktop.login1.Manager", "KillUserProcesses"]) or "").split()
        if said[:1] == ["b"] and len(said) == 2:
            return said[1] == "true"
    paths = find(system_root, "/usr/lib/systemd/logind.conf") + find(system_root, "/etc/systemd/logind.conf")
    for folder in ("/usr/lib/systemd", "/run/systemd", "/etc/systemd"):
        paths += find(system_root, folder + "/logind.conf.d/*.conf")
    default, chosen = None, None
    for path in paths:
        for mark, value in re.findall(r"^\s*(#?)\s*KillUserProcesses\s*=\s*(\w+)", read(path), re.MULTILINE):
            state = value.lower() in ("yes", "true", "1", "on")
            default, chosen = (state, chosen) if mark else (default, state)
    return default if chosen is None else chosen
