"""The agent in a container on the device: docker's words for it, and a container that is there when it is called.

One container for each home folder. Its first process does nothing and ends two minutes after the last other one; the
agent's commands are run in it by ``docker exec``, so that a run outlives our link as it does outside. The home folder
is the device's own, under the same path; processes and shared memory are the device's too (``--pid host``, ``--ipc
host``): the lock, the samples and what else disturbs the board are then the same inside and out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from argus_edge.agents import wire
from argus_edge.devices.remote_files import MAX_ANSWER_BYTES, new_mark, script
from argus_edge.devices.transport import Completed, Transport
from argus_edge.errors import ArgusError, MisfitError, RunFailedError, UsageError
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

IMAGE = "argus-edge-jetson"
"""What Dockerfile.jetson is built as, by docs/devices.md."""
PYTHON = "python3"
"""The interpreter within the image."""
NOT_FOUND = 127
"""With this status a shell says that there is no such program."""
START_S = 60.0
CALL_S = 30.0
# Of NVIDIA's images only the device's own system has these; the runtime's mounts leave them out.
TOOLS = ("/usr/bin/tegrastats", "/usr/sbin/nvpmodel", "/etc/nvpmodel.conf", "/etc/nv_tegra_release")

# mark home tool…: who we are, where the home is, and which of the tools are there.
_LOOK = """
umask 077
mark=$1 home=$2
mkdir -p -- "$home" || exit 73
cd -- "$home" || exit 73
echo "$mark user $(id -u):$(id -g)"
echo "$mark home $(pwd)"
shift 2
for tool; do [ -e "$tool" ] && echo "$mark tool $tool"; done
exit 0
"""


@dataclass(frozen=True)
class Place:
    """Where a container is started: the login's numbers, the home folder's full path, the tools that are there."""

    user: str
    home: str
    tools: tuple[str, ...]


def in_container(entry: DeviceEntry) -> DeviceEntry:
    """Return a device's entry with an image to run the agent in: its own, else the usual one."""
    return entry.model_copy(update={"container": entry.container or IMAGE})


def check_containers(entries: Sequence[DeviceEntry], runtime: str) -> None:
    """Raise a ``UsageError`` where a container cannot have what a runtime needs: a server is on the network."""
    contained = [entry.name for entry in entries if entry.container]
    if runtime == "server" and contained:
        raise UsageError(
            "The agent's container has no network, and --runtime server asks a server over it.",
            where=", ".join(contained),
            next_step="bench it without --container, or a device whose entry names no image",
        )


def name_of(entry: DeviceEntry) -> str:
    """Return the name of a device's container: the same for the same image and home folder."""
    return "argus-edge-" + hashlib.sha256(f"{entry.container}\n{entry.home}".encode()).hexdigest()[:12]


def words(entry: DeviceEntry) -> list[str]:
    """Return the words that stand before the agent's path: docker's, or the device's interpreter."""
    if entry.container is None:
        return [entry.python]
    return ["docker", "exec", name_of(entry), PYTHON]


def start_words(entry: DeviceEntry, agent: str, place: Place) -> list[str]:
    """Return docker's words that start the container."""
    binds = [f"type=bind,source={place.home},target={place.home}"]
    binds += [f"type=bind,source={tool},target={tool},readonly" for tool in place.tools]
    return [
        *("docker", "run", "--detach", "--rm", "--pull", "never", "--name", name_of(entry)),
        *("--runtime", "nvidia", "--pid", "host", "--ipc", "host", "--network", "none"),
        *("--user", place.user, "--group-add", "video", "--env", f"HOME={place.home}"),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp"),  # noqa: S108
        *(word for bind in binds for word in ("--mount", bind)),
        *("--entrypoint", PYTHON, str(entry.container), agent, "--home", place.home, wire.KEEP),
    ]


def ensure(transport: Transport, entry: DeviceEntry, agent: str) -> None:
    """See to it that the container of a device runs; nothing is done where the device wants none.

    Parameters
    ----------
    transport, entry
        The device.
    agent
        Path of the agent's zipapp on the device, below its home.

    Raises
    ------
    MisfitError
        No docker, no permission to use it, no such image, or no NVIDIA runtime; the next step mends it.
    RunFailedError
        Docker says something else.
    """
    if entry.container is None:
        return
    name = name_of(entry)
    shown = transport.run(["docker", "inspect", "--format", "{{.State.Running}}", name], timeout=CALL_S)
    if shown.status == 0 and shown.stdout.strip() == "true":
        return
    if shown.status == NOT_FOUND:
        raise failure(shown, entry, transport.description)
    if shown.status == 0:
        transport.run(["docker", "rm", "--force", name], timeout=CALL_S)
    place = _look(transport, entry)
    agent = place.home + agent.removeprefix(entry.home)
    done = transport.run(start_words(entry, agent, place), timeout=START_S)
    if done.status != 0 and "is already in use" not in done.stderr:
        raise failure(done, entry, transport.description)


def _look(transport: Transport, entry: DeviceEntry) -> Place:
    mark = new_mark()
    done = transport.run(script(_LOOK, mark, entry.home, *TOOLS), timeout=CALL_S, limit=MAX_ANSWER_BYTES)
    said = [line.partition(mark + " ")[2].partition(" ") for line in done.stdout.splitlines() if mark + " " in line]
    found = {word: text for word, _, text in said if word != "tool"}
    home, user = found.get("home", ""), found.get("user", "")
    # Docker reads commas in --mount as its own.
    if not home.startswith("/") or "," in home or not user.replace(":", "").isdecimal():
        raise MisfitError(
            f"A container cannot be given the home {clean(home or entry.home, limit=200)!r}.",
            where=transport.description,
            next_step="name another folder with `argus-edge device add … --home DIR`",
        )
    return Place(user, home, tuple(tool for word, _, tool in said if word == "tool" and tool in TOOLS))


def failure(done: Completed, entry: DeviceEntry, device: str) -> ArgusError:
    """Return the error for a container that did not start."""
    # Newer ones end with a hint at their own help.
    lines = [line for line in done.stderr.splitlines() if line.strip() and "docker run --help" not in line.lower()]
    said = clean((lines or [""])[-1].strip(), limit=300)
    lowered = done.stderr.lower()
    image = clean(str(entry.container), limit=200)
    what, next_step = f"The container did not start (status {done.status}): {said or 'no message'}.", None
    if done.status == NOT_FOUND or "docker: not found" in lowered:
        what, next_step = "There is no docker on the device.", "sudo apt-get install -y docker.io, or bench without it"
    elif "permission denied" in lowered:
        what = "The login may not use docker on the device."
        next_step = "sudo usermod -aG docker $USER there, and log in again (members of that group are as root)"
    elif "cannot connect to the docker daemon" in lowered:
        what, next_step = "Docker does not run on the device.", "sudo systemctl enable --now docker there"
    elif "no such image" in lowered or "unable to find image" in lowered:
        what = f"There is no image {image} on the device."
        next_step = f"build it there: docker build -f Dockerfile.jetson -t {image} . (docs/devices.md)"
    elif "unknown or invalid runtime" in lowered or "unknown runtime" in lowered:
        what = "Docker on the device does not know NVIDIA's runtime."
        next_step = "sudo apt-get install -y nvidia-container-runtime there, and restart docker"
    if next_step is None:
        return RunFailedError(what, where=device, next_step="`docker run` there says more")
    return MisfitError(what, where=device, next_step=next_step)
