"""Builds, starts and stops stand-in boards: an arm64 Debian run by qemu-user, in own name spaces, with a real sshd.

    python -m tests.board.stand_in build|wheels|run pi5|pi5-trixie|jetson-nano [PACKAGE …]

What it shows is real: the architecture, shared libraries, aarch64 wheels, SSH and SFTP. What it cannot show: time,
power, temperature. Never assert on those.

The board's processes, its /proc, /sys and /dev are in a mount and a process name space that end with its sshd: nothing
is left mounted, and the host's /dev is never inside. Needs root on Debian or Ubuntu with the packages in ``PACKAGES``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.board import trees

PACKAGES = "mmdebstrap qemu-user-static binfmt-support openssh-server"
INCLUDED = (
    "python3,openssh-server,libc-bin,procps,coreutils,bash,dash,sed,grep,mawk,findutils,util-linux,hostname,tar,gzip,"
    "libgomp1,libstdc++6"
)
USER = "pi"
UID = 1000
BINFMT = Path("/proc/sys/fs/binfmt_misc")
HOOKS = Path("/usr/share/mmdebstrap/hooks/merged-usr")
# Every wheel platform of an image with glibc 2.36 or newer.
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28, 31, 34, 35)] + ["manylinux2014_aarch64"]
START_S = 60.0


@dataclass(frozen=True)
class Kind:
    """A kind of board.

    Attributes
    ----------
    suite
        Debian release. The Jetson Nano's own Ubuntu 18.04 has Python 3.6, which no suite has: its stand-in runs
        Debian's.
    cpu
        What qemu pretends to be.
    """

    suite: str
    python: str
    cpu: str
    plant: Callable[[Path], trees.Tree]


KINDS = {
    "pi5": Kind("bookworm", "3.11", "cortex-a76", trees.pi5),
    "pi5-trixie": Kind("trixie", "3.13", "cortex-a76", trees.pi5),
    "jetson-nano": Kind("bookworm", "3.11", "cortex-a57", trees.jetson_nano),
}


def why_not() -> str | None:
    """Return why stand-ins cannot run on this machine, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "stand-in boards need root on Linux"
    for tool in ("mmdebstrap", "qemu-aarch64-static", "unshare", "setpriv", "ssh-keygen"):
        if not _which(tool):
            return f"{tool} is missing: apt-get install {PACKAGES}"
    if not HOOKS.is_dir():
        return "mmdebstrap has no merged-usr hooks: not Debian's"
    try:
        _enable_emulation()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"binfmt_misc cannot run aarch64 programs: {error}"
    probe = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    return f"no name spaces: {probe.stderr.strip()}" if probe.returncode else None


def home() -> Path:
    """Return the folder that keeps built boards from one test run to the next."""
    return Path(os.environ.get("ARGUS_EDGE_BOARDS") or Path(tempfile.gettempdir()) / "argus-edge-boards")


@dataclass
class Board:
    """A running stand-in.

    Attributes
    ----------
    tree
        Its planted files: a change is seen on the board at once.
    """

    name: str
    root: Path
    port: int
    key: Path
    tree: trees.Tree
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def address(self) -> str:
        """``user@host:port``."""
        return f"{USER}@127.0.0.1:{self.port}"

    @property
    def known_host(self) -> str:
        """The board's host key as a known_hosts line."""
        key = (self.root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
        return f"[127.0.0.1]:{self.port} {key[0]} {key[1]}\n"

    def value(self, name: str, text: object) -> None:
        """Set what a vendor's tool answers: ``throttled``, ``arm_hz``, ``pmic``, ``tegrastats``, ``nvpmodel``."""
        target = self.root / trees.VALUES.lstrip("/") / name
        target.write_text(f"{text}\n")

    def reboot(self) -> None:
        """Give the board a new boot id, as a restart does; its processes go on."""
        self.tree["/boot_id"] = uuid.uuid4()

    def stop(self) -> None:
        """End every process of the board; its mounts go with them."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def build(name: str) -> Path:
    """Return a board's root file system, made if it is not there (10 to 60 s, mostly download)."""
    kind, root = KINDS[name], home() / name
    with _locked(name):
        if (root / "built").exists():
            return root
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(
            [
                *("mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", f"--hook-dir={HOOKS}"),
                *(f"--include={INCLUDED}", kind.suite, str(root)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        _configure(root)
        (root / "built").touch()
    return root


def _configure(root: Path) -> None:
    """Do by hand the little that the packages' scripts would: users, keys, folders. None of the board has run yet."""
    for folder in ("run/sshd", "tmp", "var/empty", "dev", "proc", "sys", f"home/{USER}/.ssh", trees.VALUES.lstrip("/")):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(
        "root:*:0:0:root:/root:/bin/bash\nsshd:*:101:65534::/run/sshd:/usr/sbin/nologin\n"
        f"nobody:*:65534:65534::/:/usr/sbin/nologin\n{USER}:*:{UID}:{UID}::/home/{USER}:/bin/bash\n"
    )
    (root / "etc/group").write_text(f"root:x:0:\nvideo:x:44:{USER}\nnogroup:x:65534:\n{USER}:x:{UID}:\n")
    if not (root / "bin/sh").exists():
        (root / "bin/sh").symlink_to("dash")
    if not (root / "usr/bin/awk").exists():
        (root / "usr/bin/awk").symlink_to("mawk")
    _keygen(root / "etc/ssh/ssh_host_ed25519_key")
    _keygen(root / "user_key")
    shutil.copy(root / "user_key.pub", root / f"home/{USER}/.ssh/authorized_keys")
    (root / f"home/{USER}/.ssh").chmod(0o700)
    for folder, names, files in os.walk(root / "home" / USER):
        for entry in [folder, *(os.path.join(folder, item) for item in names + files)]:
            os.chown(entry, UID, UID)


def wheels(name: str, packages: Sequence[str]) -> None:
    """Install aarch64 wheels into a built board: what pip on the board would take, without qemu's slowness."""
    kind, root = KINDS[name], build(name)
    site = root / "usr/lib/python3/dist-packages"
    mark = root / ("wheels " + " ".join(sorted(packages)).replace("/", "_"))
    with _locked(name):
        if mark.exists():
            return
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site), "--upgrade"]
        command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", kind.python]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        subprocess.run([*command, *packages], check=True, stdout=subprocess.DEVNULL)
        mark.touch()


@contextlib.contextmanager
def running(name: str, port: int | None = None) -> Iterator[Board]:
    """Start a board and yield it; it ends with the context. One process at a time runs a board of a name."""
    root = build(name)
    with _locked(name + ".running"):
        board = start(name, root, port or _free_port())
        try:
            yield board
        finally:
            board.stop()


def start(name: str, root: Path, port: int) -> Board:
    """Start a built board's sshd on a loopback port.

    Raises
    ------
    RuntimeError
        sshd does not answer; the message holds its log.
    """
    kind = KINDS[name]
    planted = home() / f"{name}.planted"
    shutil.rmtree(planted, ignore_errors=True)
    tree = kind.plant(planted)
    tree["/boot_id"] = uuid.uuid4()
    for source in planted.rglob("*"):
        relative = source.relative_to(planted)
        if source.is_file() and relative.parts[0] in ("etc", "usr", "var"):
            (root / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / relative)
    config = root / "etc/ssh/sshd_board"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nUsePAM no\nUseDNS no\nSubsystem sftp internal-sftp\nMaxStartups 100\n"
        f"MaxSessions 100\nSetEnv QEMU_CPU={kind.cpu}\n"
    )
    log = root / "tmp/sshd.log"
    # It dies with the process that started it, however that ends.
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
        "/bin/sh",
        "-euc",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, _inside(root, planted)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    board = Board(name, root, port, root / "user_key", tree, process)
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            if link.recv(4) == b"SSH-":
                return board
        time.sleep(0.1)
    board.stop()
    raise RuntimeError(f"the board {name} did not start: {log.read_text(errors='replace')[-2000:]}")


def _inside(root: Path, planted: Path) -> str:
    """Return the shell script that mounts the board's file systems, within its name space, and becomes its sshd."""
    at, plant = shlex.quote(str(root)), shlex.quote(str(planted))
    nodes = "null 1 3 zero 1 5 full 1 7 random 1 8 urandom 1 9 tty 5 0"
    return f"""
mount -t proc proc {at}/proc
mount --bind {plant}/proc/cpuinfo {at}/proc/cpuinfo
mount --bind {plant}/boot_id {at}/proc/sys/kernel/random/boot_id
mount --bind {plant}/sys {at}/sys
mount -t tmpfs -o mode=755 tmpfs {at}/dev
set -- {nodes}
while [ $# -gt 0 ]; do mknod -m 666 {at}/dev/$1 c $2 $3; shift 3; done
mkdir {at}/dev/pts {at}/dev/shm
chmod 1777 {at}/dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts {at}/dev/pts
ln -s pts/ptmx {at}/dev/ptmx
ln -s /proc/self/fd {at}/dev/fd
exec chroot {at} /usr/sbin/sshd -D -e -f /etc/ssh/sshd_board
"""


def _which(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin")


def _enable_emulation() -> None:
    if not (BINFMT / "status").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)], check=True, capture_output=True)
    if not (BINFMT / "qemu-aarch64").exists():
        update = _which("update-binfmts")
        if not update:
            raise OSError("no update-binfmts (apt package binfmt-support)")
        subprocess.run([update, "--enable", "qemu-aarch64"], check=True, capture_output=True)
    if not (BINFMT / "qemu-aarch64").exists():
        raise OSError("qemu-aarch64 is not registered")


def _keygen(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold a board's lock: tests in several processes share the folder."""
    home().mkdir(parents=True, exist_ok=True)
    with open(home() / f".{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Build, fill or run a board by hand."""
    if len(arguments) < 2 or arguments[0] not in ("build", "wheels", "run") or arguments[1] not in KINDS:
        print(__doc__, file=sys.stderr)
        return 2
    reason = why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    verb, name, *packages = arguments
    root = build(name)
    if packages:
        wheels(name, packages)
    if verb == "run":
        with running(name) as board, contextlib.suppress(KeyboardInterrupt):
            print(f"{board.address}, key {board.key}; Ctrl-C ends it")
            print(f"tools' answers in {root}{trees.VALUES}, /sys in {board.tree.root}/sys")
            board.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
