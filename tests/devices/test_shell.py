"""One argument vector as one string: the login shell that reads it must run exactly that vector."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argus_edge.devices.shell import command_line

SHELLS = ["sh", "bash", "zsh", "fish", "tcsh", "csh", "busybox"]
ARGUMENTS = [
    "plain",
    "two words",
    "",
    "$HOME `id` $(id)",
    "it's",
    "back\\slash",
    "a!b",
    "*?[x]{a,b}",
    "~/x",
    "=ls",
    "%self",
]
ARGUMENTS += [
    "%d\\n",
    "new\nline",
    "tab\there",
    "ünïcode ✓",
    "; rm -rf /",
    "&& || | > <",
    "#comment",
    '"double"',
    "'\\''",
]
ARGUMENTS += ["\\0101", "--opt=v"]
SHOW = [sys.executable, "-c", "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"]


def as_seen(shell: str, argv: list[str]) -> list[str]:
    """The arguments that a program gets when the shell is a login's and sshd gives it our string."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    command = [path, "sh", "-c"] if shell == "busybox" else [path, "-c"]
    done = subprocess.run([*command, command_line([*SHOW, *argv])], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_shell_passes_the_argument_on_untouched(shell, argument):
    assert as_seen(shell, [argument, "end"]) == [argument, "end"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=40), min_size=1
    )
)
def test_any_text_survives_a_posix_shell(argv):
    assert as_seen("sh", argv) == argv


def test_a_nul_or_nothing_at_all_cannot_be_run():
    for argv in ([], ["a\0b"]):
        with pytest.raises(ValueError, match="argument"):
            command_line(argv)
