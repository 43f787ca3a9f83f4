"""NVIDIA GPUs of hosts, through NVML: clocks, power, energy, memory, why the clock is held down."""

import ctypes
import os

from .files import Unavailable, find

LIBRARY = "libnvidia-ml.so.1"
GRAPHICS, MEMORY = 0, 2
# nvmlClocksThrottleReasons (renamed EventReasons in driver 535): bit -> name. The first two are no throttling.
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
REASONS = (
    (0x1, "gpu-idle"),
    (0x2, "applications-clocks-setting"),
    (0x4, "software-power-cap"),
    (0x8, "hardware-slowdown"),
    (0x10, "sync-boost"),
    (0x20, "software-thermal-slowdown"),
    (0x40, "hardware-thermal-slowdown"),
    (0x80, "hardware-power-brake"),
    (0x100, "display-clocks-setting"),
)
# A fault or heat slows the clock down. The software power cap is no fault: a card at its limit runs so, always.
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80


def open_sensor(system_root):
    """Return the sensor. Raises Unavailable where there is no driver or no GPU."""
    return Nvml(load(system_root))


def load(system_root):
    """Return the library, initialised. Raises Unavailable."""
    path = LIBRARY
    if os.path.realpath(system_root) != "/":
        found = find(system_root, "/usr/lib/*/" + LIBRARY) + find(system_root, "/usr/lib/" + LIBRARY)
        if not found:
            raise Unavailable("no %s below %s" % (LIBRARY, system_root))
        path = found[0]
    try:
        library = ctypes.CDLL(path)
        status = library.nvmlInit_v2()
    except (OSError, AttributeError) as error:
        raise Unavailable("no NVIDIA driver: %s" % error)
    if status:
        raise Unavailable("NVML does not initialise (status %d)" % status)
    return library


class MemoryInfo(ctypes.Structure):
    """nvmlMemory_t, bytes."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, per cent."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """One GPU: the first that CUDA_VISIBLE_DEVICES names, else the first."""

    def __init__(self, library):
        self._nvml = library
        self._device = self._handle(os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip())
        self.name = self._text("nvmlDeviceGetName", 96) or "NVIDIA GPU"
        power = self._ask(ctypes.c_uint, "nvmlDeviceGetPowerUsage")
        # An integrated GPU (Jetson) answers "not supported": its power is the INA3221's to tell.
        self.power = None if power is None else ("NVML", "the GPU board; leaves out the host")
        self._limit = self._ask(ctypes.c_uint, "nvmlDeviceGetMaxClockInfo", GRAPHICS)
        self.detail = self.name + ("" if self.power else "; tells no power")

    def _handle(self, wanted):
        device, count = ctypes.c_void_p(), ctypes.c_uint()
        if self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) or not count.value:
            self.close()
            raise Unavailable("NVML finds no GPU")
        if wanted.startswith(("GPU-", "MIG-")):
            status = self._nvml.nvmlDeviceGetHandleByUUID(wanted.encode(), ctypes.byref(device))
        else:
            index = int(wanted) if wanted.isdigit() and int(wanted) < count.value else 0
            status = self._nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device))
        if status:
            self.close()
            raise Unavailable("NVML gives no handle of the GPU (status %d)" % status)
        return device

    def _ask(self, kind, function, *arguments):
        """Return what a query writes, or None where the driver, the library or the GPU does not support it."""
        value = kind()
        call = getattr(self._nvml, function, None)
        if call is None or call(self._device, *arguments + (ctypes.byref(value),)):
            return None
        return value if isinstance(value, ctypes.Structure) else value.value

    def _text(self, function, size):
        buffer = ctypes.create_string_buffer(size)
        call = getattr(self._nvml, function, None)
        if call is None or call(self._device, buffer, ctypes.c_uint(size)):
            return ""
        return buffer.value.decode("utf-8", "replace")

    def _reasons(self):
        mask = self._ask(ctypes.c_ulonglong, "nvmlDeviceGetCurrentClocksEventReasons")
        return self._ask(ctypes.c_ulonglong, "nvmlDeviceGetCurrentClocksThrottleReasons") if mask is None else mask

    def read(self):
        """Return ``gpu_…`` values and the GPU's power as ``power_w``; what is not supported is left out."""
        milliwatts = self._ask(ctypes.c_uint, "nvmlDeviceGetPowerUsage")
        watts = None if milliwatts is None else milliwatts * 1e-3
        joules = _scaled(self._ask(ctypes.c_ulonglong, "nvmlDeviceGetTotalEnergyConsumption"), 1e-3)
        mask = self._reasons()
        memory = self._ask(MemoryInfo, "nvmlDeviceGetMemoryInfo")
        load = self._ask(Utilization, "nvmlDeviceGetUtilizationRates")
        values = {
            "gpu_clock_khz": _scaled(self._ask(ctypes.c_uint, "nvmlDeviceGetClockInfo", GRAPHICS), 1e3),
            "gpu_memory_clock_khz": _scaled(self._ask(ctypes.c_uint, "nvmlDeviceGetClockInfo", MEMORY), 1e3),
            "gpu_clock_limit_khz": _scaled(self._limit, 1e3),
            "gpu_temperature_c": _scaled(self._ask(ctypes.c_uint, "nvmlDeviceGetTemperature", 0), 1.0),
            "gpu_power_w": watts,
            "gpu_energy_j": joules,
            "gpu_throttle_reasons": _scaled(mask, 1.0),
            "gpu_throttled": None if mask is None else float(bool(mask & THROTTLED)),
            "gpu_memory_used_bytes": _scaled(memory and memory.used, 1.0),
            "gpu_load_percent": _scaled(load and load.gpu, 1.0),
            "power_w": watts,
            "energy_j": joules if self.power else None,
        }
        return {name: value for name, value in values.items() if value is not None}

    def vendor(self):
        """Return name, driver, limits and the reasons by name."""
        memory = self._ask(MemoryInfo, "nvmlDeviceGetMemoryInfo")
        mask = self._reasons()
        said = {
            "name": self.name,
            "driver": self.driver(),
            "cuda": self.cuda(),
            "memory_total_bytes": memory and memory.total,
            "power_limit_w": _scaled(self._ask(ctypes.c_uint, "nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "throttle_reasons": None if mask is None else reasons(mask),
        }
        return {key: value for key, value in said.items() if value is not None}

    def driver(self):
        """Return the driver's version, or None."""
        buffer = ctypes.create_string_buffer(80)
        call = getattr(self._nvml, "nvmlSystemGetDriverVersion", None)
        return None if call is None or call(buffer, ctypes.c_uint(80)) else buffer.value.decode("ascii", "replace")

    def cuda(self):
        """Return the newest CUDA version that the driver carries (``13.0``), or None."""
        version = ctypes.c_int()
        call = getattr(self._nvml, "nvmlSystemGetCudaDriverVersion_v2", None)
        if call is None or call(ctypes.byref(version)):
            return None
        return "%d.%d" % (version.value // 1000, version.value % 1000 // 10)

    def close(self):
        """Give the library back."""
        self._nvml.nvmlShutdown()


def reasons(mask):
    """Return the names of a throttle mask's bits; a bit that is not known is named by its value."""
    names = [name for bit, name in REASONS if mask & bit]
    known = sum(bit for bit, _ in REASONS)
    return names + ["0x%x" % (1 << bit) for bit in range(64) if mask & ~known & 1 << bit]


def _scaled(value, factor):
    return None if value is None else value * factor
