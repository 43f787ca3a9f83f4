"""The worker's memory, by kind, read by itself between timed windows."""

from . import system


def reset_peak():
    """Set VmHWM back to the present resident set; return whether the kernel let us."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def peak():
    """Return VmHWM in bytes, or None. Not ``ru_maxrss``: that one is inherited through fork and exec."""
    return system.status_bytes().get("VmHWM")


def proportional(pid="self"):
    """Return PSS in bytes, or None. Walks the page tables for milliseconds: never inside a timed window."""
    total, found = 0, False
    # Kernels before 4.14 (a Jetson Nano's) have no roll-up; theirs is summed over the mappings.
    folder = "/proc/%s/" % pid
    text = system.read_text(folder + "smaps_rollup") or system.read_text(folder + "smaps", 64 << 20)
    for line in text.splitlines():
        if line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
            found = True
    return total if found else None


def steady_figures(peak_before, samples_bytes):
    """Return what ``MemoryFigures`` holds of the time since the peak was reset.

    Parameters
    ----------
    peak_before
        VmHWM before the samples' mapping was made, bytes or None.
    samples_bytes
        Size of that mapping. It is the harness's, resident to the last page, and taken off the window's peak.
    """
    sizes = system.status_bytes()
    peaks = [peak_before, sizes["VmHWM"] - samples_bytes] if "VmHWM" in sizes else [peak_before]
    return {
        "peak_rss_steady": max((value for value in peaks if value is not None), default=None),
        "pss": proportional(),
        "file_backed": sizes.get("RssFile"),
        "anonymous": sizes.get("RssAnon"),
        "swap": sizes.get("VmSwap"),
    }
