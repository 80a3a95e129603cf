"""Draw the sections of agents' notes for the sample: `python draw.py CHECKOUTS`, a folder for each repository.

A page is cut at its headings; a seed gives the order in which sections are drawn, until they have LINES lines of words.
The headings above a section stay. The result is written beside this file. For the pages in SECOND the next sections in
the same order are drawn, or the first ones if none were drawn before.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

LINES = 42
#: Repository, page, commit.
PAGES = {
    "argo-cd": "AGENTS.md",
    "browser-use": "CLAUDE.md",
    "celestia-app": "CLAUDE.md",
    "claude-code-action": "CLAUDE.md",
    "dapr": ".github/copilot-instructions.md",
    "graphiti": "CLAUDE.md",
    "ibc-go": "AGENTS.md",
    "langgraph": "AGENTS.md",
    "openai-agents-python": "AGENTS.md",
    "pydantic-ai": "AGENTS.md",
    "python-sdk": "AGENTS.md",
    "ruff": "AGENTS.md",
    "vercel-ai": "AGENTS.md",
}
#: Name in the sample -> repository, page, and whether the sections are those after the first LINES.
SECOND = {
    "base-action": ("claude-code-action", "base-action/CLAUDE.md", False),
    "graphiti-agents": ("graphiti", "AGENTS.md", False),
    "openai-agents-python-2": ("openai-agents-python", "AGENTS.md", True),
    "ruff-2": ("ruff", "AGENTS.md", True),
}


def sections(text):
    """Return the sections of a page, each with the headings above it, as lists of lines."""
    found, above, fence = [[]], [], ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        heading = None if fence else re.match(r"(#{1,6})\s", line)
        if heading:
            above = [each for each in above if len(each[0]) < len(heading[1])]
            found.append([*(each[1] for each in above), line])
            above.append((heading[1], line))
        else:
            found[-1].append(line)
    return found


def drawn(name, text, *, second=False):
    """Return a page of the sections drawn first, or next, in their original order."""
    parts = [part for part in enumerate(sections(text)) if sum(bool(line.strip()) for line in part[1]) > 1]
    random.Random(f"notes {name}").shuffle(parts)
    taken, count = [], 0
    for part in parts:
        if count >= LINES:
            if not second:
                break
            taken, count, second = [], 0, False
        taken.append(part)
        count += sum(bool(line.strip()) for line in part[1])
    lines, told = [], []
    for _, part in sorted(taken):
        titles = [line for line in part if re.match(r"#{1,6}\s", line)]
        while part and part[0] in told:
            part = part[1:]
        lines += [*part, ""]
        told = titles
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def page_of(folder, page):
    """Return the page at the newest commit."""
    git = ["git", "-C", folder, "show", f"HEAD:{page}"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    folder, here = Path(sys.argv[1]), Path(__file__).parent
    for name, page in PAGES.items():
        (here / f"{name}.md").write_text(drawn(name, page_of(folder / name, page)))
    for name, (repository, page, second) in SECOND.items():
        (here / f"{name}.md").write_text(drawn(repository, page_of(folder / repository, page), second=second))
