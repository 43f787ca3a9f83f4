"""Writes the files that a board's kernel and vendor show: /sys, /proc/cpuinfo, release files, tools as shell scripts.

The same trees serve two uses: an injectable system root for the sensors' tests, and the /sys of a stand-in board.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.board import recordings


@dataclass
class Tree:
    """A folder that stands for a board's root."""

    root: Path

    def __getitem__(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text()

    def __setitem__(self, path: str, text: object) -> None:
        """Write a file, in place where it exists: a reader that keeps it open sees the change."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n")

    def __delitem__(self, path: str) -> None:
        target = self.root / path.lstrip("/")
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()

    def text(self, path: str, text: str) -> None:
        """Write a file exactly."""
        self[path] = ""
        (self.root / path.lstrip("/")).write_text(text)

    def tool(self, path: str, script: str) -> None:
        """Write an executable shell script. ``$BOARD`` in it is the folder of values that tests may change."""
        self.text(path, script)
        (self.root / path.lstrip("/")).chmod(0o755)

    def link(self, path: str, target: str) -> None:
        """Make a relative link below the root."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


# Values that the tools' scripts answer with, one file each, changed by tests while a board runs.
VALUES = "/var/lib/board"
SCRIPT = f"""#!/bin/sh
here=$(dirname "$(dirname "$(dirname "$0")")")
BOARD="${{here%/}}{VALUES}"
"""


def cpus(tree: Tree, *, count: int, lowest: int, highest: int, governor: str, current: int) -> None:
    """Write cpufreq: one policy for all cores, which each core links to, as on both boards."""
    folder = "/sys/devices/system/cpu/cpufreq/policy0"
    for name, value in {
        "scaling_governor": governor,
        "scaling_cur_freq": current,
        "scaling_min_freq": lowest,
        "scaling_max_freq": highest,
        "cpuinfo_min_freq": lowest,
        "cpuinfo_max_freq": highest,
        "related_cpus": " ".join(map(str, range(count))),
    }.items():
        tree[f"{folder}/{name}"] = value
    for core in range(count):
        tree[f"/sys/devices/system/cpu/cpu{core}/topology/core_id"] = core
        tree.link(f"/sys/devices/system/cpu/cpu{core}/cpufreq", "../cpufreq/policy0")
    for name in ("possible", "present", "online"):
        tree[f"/sys/devices/system/cpu/{name}"] = f"0-{count - 1}"


def arm_cpuinfo(tree: Tree, *, count: int, part: str, features: str, tail: str) -> None:
    """Write /proc/cpuinfo as an arm64 kernel does."""
    core = (
        "processor\t: {}\nBogoMIPS\t: 108.00\nFeatures\t: {}\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {}\nCPU revision\t: 1\n\n"
    )
    tree.text("/proc/cpuinfo", "".join(core.format(i, features, part) for i in range(count)) + tail)


def zones(tree: Tree, milli_celsius: dict[str, int]) -> None:
    """Write the thermal zones in order."""
    for i, (name, value) in enumerate(milli_celsius.items()):
        tree[f"/sys/class/thermal/thermal_zone{i}/type"] = name
        tree[f"/sys/class/thermal/thermal_zone{i}/temp"] = value


def cooling(tree: Tree, states: dict[str, int]) -> None:
    """Write the cooling devices in order."""
    for i, (name, value) in enumerate(states.items()):
        tree[f"/sys/class/thermal/cooling_device{i}/type"] = name
        tree[f"/sys/class/thermal/cooling_device{i}/cur_state"] = value


def pi5(root: Path) -> Tree:
    """A Raspberry Pi 5, idle: 52 C, 1.5 of 2.4 GHz, no under-voltage."""
    tree = Tree(root)
    model = "Raspberry Pi 5 Model B Rev 1.0"
    cpus(tree, count=4, lowest=1_500_000, highest=2_400_000, governor="ondemand", current=1_500_000)
    features = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
    arm_cpuinfo(tree, count=4, part="0xd0b", features=features, tail=f"Revision\t: c04170\nModel\t\t: {model}\n")
    tree.text("/sys/firmware/devicetree/base/model", model + "\0")
    zones(tree, {"cpu-thermal": 52350})
    cooling(tree, {"pwm-fan": 1})
    tree["/sys/class/hwmon/hwmon0/name"] = "cpu_thermal"
    tree["/sys/class/hwmon/hwmon0/temp1_input"] = 52350
    tree["/sys/class/hwmon/hwmon1/name"] = "rpi_volt"
    tree["/sys/class/hwmon/hwmon1/in0_lcrit_alarm"] = 0
    tree["/etc/rpi-issue"] = "Raspberry Pi reference 2024-11-19\nGenerated using pi-gen, stage2"
    tree[VALUES + "/throttled"] = "0x0"
    tree[VALUES + "/arm_hz"] = 1500020480
    tree[VALUES + "/pmic"] = recordings.PMIC_PI5.rstrip()
    tree.tool(
        "/usr/bin/vcgencmd",
        SCRIPT
        + """case "$1" in
get_throttled) echo "throttled=$(cat "$BOARD/throttled")";;
measure_clock) echo "frequency(0)=$(cat "$BOARD/arm_hz")";;
measure_temp) echo "temp=52.3'C";;
measure_volts) echo "volt=0.7200V";;
pmic_read_adc) cat "$BOARD/pmic";;
version) printf '2024/09/10 14:40:32 \\nCopyright (c) 2012 Broadcom\\nversion 2bb2ae64 (release) (start)\\n';;
bootloader_version) printf '2024/09/23 14:02:56\\nversion 26826259 (release)\\n';;
*) echo 'error=1 error_msg="Command not registered"'; exit 255;;
esac
""",
    )
    return tree


def jetson_nano(root: Path) -> Tree:
    """A Jetson Nano on L4T 32.7, idle, in MAXN."""
    tree = Tree(root)
    model = "NVIDIA Jetson Nano Developer Kit"
    cpus(tree, count=4, lowest=102_000, highest=1_479_000, governor="schedutil", current=1_479_000)
    arm_cpuinfo(tree, count=4, part="0xd07", features="fp asimd evtstrm aes pmull sha1 sha2 crc32", tail="")
    tree.text("/sys/firmware/devicetree/base/model", model + "\0")
    celsius = {"AO-therm": 41500, "CPU-therm": 38500, "GPU-therm": 36500, "PLL-therm": 37000}
    zones(tree, {**celsius, "PMIC-Die": 100000, "thermal-fan-est": 37500})
    cooling(tree, {"pwm-fan": 0, "cpu-balanced": 0, "gpu-balanced": 0})
    monitor = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    for i, (rail, milliwatts) in enumerate({"POM_5V_IN": 2451, "POM_5V_GPU": 40, "POM_5V_CPU": 652}.items()):
        tree[f"{monitor}/rail_name_{i}"] = rail
        tree[f"{monitor}/in_power{i}_input"] = milliwatts
        tree[f"{monitor}/in_voltage{i}_input"] = 5096
        tree[f"{monitor}/in_current{i}_input"] = round(milliwatts / 5.096)
    tree["/sys/class/devfreq/57000000.gpu/cur_freq"] = 76_800_000
    tree["/sys/class/devfreq/57000000.gpu/max_freq"] = 921_600_000
    tree["/sys/devices/gpu.0/load"] = 125
    tree["/etc/nv_tegra_release"] = recordings.NV_TEGRA_RELEASE["32.7.1"]
    jetson_tools(tree, recordings.TEGRASTATS["32.7 Nano"], recordings.NVPMODEL["32.7 Nano"])
    return tree


def orin_nano(root: Path, *, l4t: str = "36.4.3") -> Tree:
    """A Jetson Orin Nano 8 GB on JetPack 5, 6 or 7: the kernel's own INA3221 driver."""
    tree = Tree(root)
    model = "NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super"
    cpus(tree, count=6, lowest=115_200, highest=1_728_000, governor="schedutil", current=729_600)
    arm_cpuinfo(tree, count=6, part="0xd42", features="fp asimd atomics fphp asimdhp asimddp", tail="")
    tree.text("/sys/firmware/devicetree/base/model", model + "\0")
    zones(
        tree,
        {
            "cpu-thermal": 47800,
            "gpu-thermal": 46200,
            "cv0-thermal": -256000,
            "soc0-thermal": 46500,
            "tj-thermal": 48100,
        },
    )
    cooling(tree, {"cpufreq-cpu0": 0, "devfreq-17000000.gpu": 0, "pwm-fan": 1})
    device = "/sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040"
    monitor = device + "/hwmon/hwmon1"
    tree[monitor + "/name"] = "ina3221"
    for i, (rail, (millivolts, milliamperes)) in enumerate(
        {"VDD_IN": (5032, 952), "VDD_CPU_GPU_CV": (5032, 104), "VDD_SOC": (5024, 304)}.items(), start=1
    ):
        tree[f"{monitor}/in{i}_label"] = rail
        tree[f"{monitor}/in{i}_input"] = millivolts
        tree[f"{monitor}/curr{i}_input"] = milliamperes
        tree[f"{monitor}/curr{i}_max_alarm"] = 0
        tree[f"{monitor}/curr{i}_crit_alarm"] = 0
    tree[monitor + "/in7_label"] = "sum of shunt voltages"
    tree[monitor + "/in7_input"] = 6
    # The same device is reached by three links.
    tree.link("/sys/bus/i2c/devices/1-0040", "../../../devices/platform/bus@0/c240000.i2c/i2c-1/1-0040")
    tree.link("/sys/bus/i2c/drivers/ina3221/1-0040", "../../../../devices/platform/bus@0/c240000.i2c/i2c-1/1-0040")
    tree.link("/sys/class/hwmon/hwmon1", "../../devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon/hwmon1")
    tree["/sys/class/hwmon/hwmon3/name"] = "soctherm_oc"
    for i in (1, 2, 3):
        tree[f"/sys/class/hwmon/hwmon3/oc{i}_event_cnt"] = 0
    tree["/sys/class/devfreq/17000000.gpu/cur_freq"] = 306_000_000
    tree["/sys/class/devfreq/17000000.gpu/max_freq"] = 1_020_000_000
    tree["/sys/devices/platform/gpu.0/load"] = 0
    tree["/etc/nv_tegra_release"] = recordings.NV_TEGRA_RELEASE[l4t]
    key = l4t.rpartition(".")[0] + " Orin Nano"
    jetson_tools(tree, recordings.TEGRASTATS[key], recordings.NVPMODEL[key])
    return tree


def jetson_tools(tree: Tree, tegrastats: str, nvpmodel: str) -> None:
    """Write tegrastats, which never ends by itself, and nvpmodel, which is not on a plain user's PATH."""
    tree[VALUES + "/tegrastats"] = tegrastats
    tree[VALUES + "/nvpmodel"] = nvpmodel.rstrip()
    tree.tool("/usr/bin/tegrastats", SCRIPT + 'while :; do cat "$BOARD/tegrastats"; sleep 1; done\n')
    tree.tool("/usr/sbin/nvpmodel", SCRIPT + '[ "$1" = -q ] && cat "$BOARD/nvpmodel"\n')


def x86_server(root: Path) -> Tree:
    """A two-socket x86 server with RAPL and thermal throttle counters."""
    tree = Tree(root)
    for core in range(4):
        folder = f"/sys/devices/system/cpu/cpufreq/policy{core}"
        for name, value in {
            "scaling_governor": "powersave",
            "scaling_cur_freq": 2_000_000 + 100_000 * core,
            "scaling_max_freq": 3_500_000,
            "cpuinfo_min_freq": 800_000,
            "cpuinfo_max_freq": 3_500_000,
        }.items():
            tree[f"{folder}/{name}"] = value
        tree[f"/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count"] = core
        tree[f"/sys/devices/system/cpu/cpu{core}/thermal_throttle/package_throttle_count"] = 5
    zones(tree, {"acpitz": 27800, "x86_pkg_temp": 61000, "iwlwifi_1": 88000})
    cooling(tree, {"Processor": 0, "intel_powerclamp": -1})
    for i, (name, micro) in enumerate({"package-0": 1_000_000, "package-1": 2_000_000, "psys": 9_000_000}.items()):
        folder = f"/sys/class/powercap/intel-rapl:{i}"
        tree[folder + "/name"] = name
        tree[folder + "/energy_uj"] = micro
        tree[folder + "/max_energy_range_uj"] = 262_143_328_850
    tree["/sys/class/powercap/intel-rapl:0:0/name"] = "dram"
    tree["/sys/class/powercap/intel-rapl:0:0/energy_uj"] = 500_000
    tree["/sys/class/powercap/intel-rapl:0:0/max_energy_range_uj"] = 65_712_999_613
    tree["/sys/class/dmi/id/sys_vendor"] = "Dell Inc."
    tree["/sys/class/dmi/id/product_name"] = "PowerEdge R750"
    tree["/sys/class/dmi/id/bios_vendor"] = "Dell Inc."
    tree["/sys/class/dmi/id/bios_version"] = "1.9.2"
    return tree
