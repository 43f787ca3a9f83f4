"""The pages: every link leads somewhere, every command in them is one, every option is in one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.commands import commands

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
OPTION = r"(?<![\w-])--[a-z][\w-]+"
# In a block, or in backquotes.
COMMAND = r"(?:^    |`)argus-edge ([a-z][^\n`]*)"

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="not a checkout: there are no pages")


OPTIONS = {
    path: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for path, command in commands()
}
GROUPS = {path[:1] for path in OPTIONS if len(path) > 1}


def anchors(page: Path) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        if not target.startswith("http") and not (there.exists() and (not anchor or anchor in anchors(there))):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_its_options_are_ones_that_argus_edge_takes(page: Path) -> None:
    wrong = []
    for line in re.findall(COMMAND, page.read_text(), re.M):
        words = line.split("#")[0].split()
        options = OPTIONS.get(tuple(words[:2]), OPTIONS.get(tuple(words[:1])))
        if options is not None:
            wrong += [f"{words[0]} {option}" for option in re.findall(OPTION, " ".join(words)) if option not in options]
        elif words not in [list(group) for group in GROUPS]:
            wrong.append(line)
    assert wrong == []


def test_every_option_is_in_a_page() -> None:
    named = {option for page in PAGES for option in re.findall(OPTION, page.read_text())}
    plain = {"--help", "--ask"}  # --ask is what `runs list` does anyway
    missing = {
        f"{' '.join(command)} {option}"
        for command, options in OPTIONS.items()
        for option in options
        if option.startswith("--") and option not in named | plain
    }
    assert missing == set()
