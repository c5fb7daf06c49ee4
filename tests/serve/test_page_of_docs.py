"""The commands of docs/serve.md, one after the other, on a server; every path has one."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from graphtide.serve.host import ServerSettings
from graphtide.serve.openapi import DESCRIPTION

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
MARK = "--- next command ---"


def commands():
    """The commands of the page, and what each prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> "):
                found[-1] = (found[-1][0] + "\n" + line[2:], found[-1][1])
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.slow
def test_the_commands_print_what_the_page_says(serve):
    with serve(settings=ServerSettings()) as client:
        check_commands(client)


def check_commands(client):
    place = urlsplit(str(client.base_url)).netloc
    listed = commands()
    script = "".join(f"echo; echo '{MARK}'\n{command}\n" for command, _ in listed)
    done = subprocess.run(
        ["bash", "-c", script.replace("localhost:8765", place)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    printed = done.stdout.split(f"{MARK}\n")[1:]
    assert len(printed) == len(listed), done.stderr
    checker = doctest.OutputChecker()
    for (command, expected), found in zip(listed, printed, strict=True):
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected + "\n", found.strip() + "\n", options), (
            command,
            found,
        )


def test_every_path_has_an_example():
    asked = " ".join(command for command, _ in commands())
    for path in DESCRIPTION["paths"]:
        pattern = re.sub(r"\{\w+\}", "[^ /]+", path).replace("/sparql", "/sparql\\b")
        assert re.search(rf"localhost:8765{pattern}", asked), path
