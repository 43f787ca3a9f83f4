"""Files over a plain command channel: the scripts that run on the board, and what they answer.

No SFTP: a board may have none (dropbear), and a stream into ``dd`` is faster. Every path is an argument of a fixed
script, never part of it. Answers are one line behind a random word, so that a login banner on stdout cannot be taken
for one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from argus_edge.errors import DeviceUnreachableError, MisfitError, RunFailedError
from argus_edge.text import clean

BLOCK_BYTES = 1 << 20
"""Uploads go on from a multiple of this, the block size of the board's ``dd``."""

MAX_ANSWER_BYTES = 1 << 16
"""Longest noise before an answer that is still looked through."""

# Exit statuses of the scripts, from sysexits.h.
INCOMPLETE, CORRUPT, CANNOT_WRITE, NO_HASH = 75, 65, 73, 69

# The C locale, because a failure is told by its message. openssl first: it uses the processor's SHA instructions where
# coreutils does not (a 400 MB file on an x86 with SHA-NI: 0.3 s against 2.4 s).
_HASH = """
LC_ALL=C; export LC_ALL
sum256() {
  if command -v openssl >/dev/null 2>&1 && openssl dgst -sha256 -r <"$1" 2>/dev/null; then :
  elif command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"
  elif command -v shasum >/dev/null 2>&1; then shasum -a 256 <"$1"
  else echo "no sha256sum, shasum or openssl" >&2; exit 69; fi
}
"""

# mark final part sha256: is the file there, and how much of it?
LOOK = (
    _HASH
    + """
mark=$1 final=$2 part=$3 want=$4
umask 077
mkdir -p -- "${final%/*}" || exit 73
if [ -f "$final" ]; then
  have=$(sum256 "$final") || exit 69
  [ "${have%% *}" = "$want" ] && { echo "$mark there"; exit 0; }
fi
size=0
[ -f "$part" ] && size=$(wc -c <"$part")
echo "$mark part" $size
"""
)

# mark final part sha256 size block: stdin goes into the part from that block on; a whole and right part becomes the
# file. dd seeks instead of appending: a write of an older, dead connection that arrives late lands where the same bytes
# belong.
STORE = (
    _HASH
    + """
mark=$1 final=$2 part=$3 want=$4 size=$5 block=$6
umask 077
said=$(dd of="$part" bs=1048576 seek="$block" conv=notrunc 2>&1) || {
  case $said in *"o space left"*|*"uota exceeded"*) rm -f -- "$part";; esac
  echo "$said" >&2; exit 73
}
have=$(wc -c <"$part")
[ "$have" -lt "$size" ] && exit 75
sum=$(sum256 "$part") || exit 69
[ "${sum%% *}" = "$want" ] || { rm -f -- "$part"; exit 65; }
mv -f -- "$part" "$final" || exit 73
echo "$mark stored"
"""
)

# mark file: its size, then its bytes.
SEND = """
LC_ALL=C; export LC_ALL
mark=$1 file=$2
[ -f "$file" ] || { echo "$mark missing"; exit 0; }
size=$(wc -c <"$file") || exit 73
echo "$mark file" $size
exec cat <"$file"
"""


@dataclass(frozen=True)
class Answer:
    """One answer of a script: a word and, for some, a number."""

    word: str
    number: int = 0


def new_mark() -> str:
    """Return a word that no banner contains."""
    return "argus-" + secrets.token_hex(8)


def script(text: str, *arguments: str) -> list[str]:
    """Return the argument vector that runs a script with its arguments."""
    return ["/bin/sh", "-c", text, "argus-edge", *arguments]


def part_name(remote: str, sha256: str) -> str:
    """Return the temporary name beside a file under which an upload of this content grows."""
    folder, _, name = remote.rpartition("/")
    return f"{folder}/.{name[:80]}.{sha256[:16]}.part"


def find_answer(output: str, mark: str) -> Answer | None:
    """Return the answer within a command's output, or None where there is none."""
    for line in output.splitlines():
        at = line.find(mark + " ")
        if at >= 0:
            words = line[at + len(mark) + 1 :].split()
            if words and (len(words) == 1 or words[1].isdecimal()):
                return Answer(words[0], int(words[1][:18]) if len(words) > 1 else 0)
    return None


def failure(status: int, stderr: str, remote: str, device: str) -> Exception:
    """Return the error for a transfer script that did not answer as it should."""
    said = clean(stderr, limit=300)
    where = f"{device}:{clean(remote, limit=200)}"
    lowered = stderr.lower()
    if "no space left" in lowered or "quota exceeded" in lowered:
        return MisfitError(
            "There is no room left on the device.", where=where, next_step="free some space there, or name another home"
        )
    if "permission denied" in lowered or "read-only file system" in lowered:
        return MisfitError(
            f"The device does not let us write there: {said}.",
            where=where,
            next_step="choose a writable folder with `argus-edge device add … --home DIR`",
        )
    if status == NO_HASH:
        return MisfitError(
            "The device has no program that computes SHA-256.", where=where, next_step="sudo apt install coreutils"
        )
    if status == INCOMPLETE:
        return DeviceUnreachableError(
            "The upload was cut off.", where=where, next_step="run the same command again; it goes on from there"
        )
    if status == CORRUPT:
        return RunFailedError(
            "The file that arrived on the device has a wrong hash.",
            where=where,
            next_step="check the device's storage (an SD card that is failing?) and try again",
        )
    return RunFailedError(f"The transfer failed on the device (status {status}): {said or 'no message'}.", where=where)
