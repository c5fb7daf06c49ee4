"""INCLUDE reads programs of the program's own folder, and shows nothing of other files."""

from __future__ import annotations

import pytest

from graphtide.errors import QueryError
from graphtide.lang.tide.program import Program

SECRET = "root:$6$salt$hash:19000:0:99999:7:::\n"
QUERY = "QUERY q AS SELECT * { ?s ?p ?o }"


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "programs"
    (inside / "parts").mkdir(parents=True)
    (tmp_path / "shadow").write_text(SECRET)
    (tmp_path / "shadow.tide").write_text(SECRET)
    (inside / "shadow").write_text(SECRET)
    (inside / "link.tide").symlink_to(tmp_path / "shadow")
    (inside / "deeper.tide").symlink_to(tmp_path / "shadow.tide")
    return inside


@pytest.mark.parametrize(
    "name",
    [
        "../shadow",
        "../shadow.tide",
        "shadow",
        "link.tide",
        "deeper.tide",
        "parts/../../shadow.tide",
    ],
)
def test_other_files_are_not_read(folder, name):
    (folder / "main.tide").write_text(f'INCLUDE "{name}"\n{QUERY}')
    with pytest.raises(QueryError) as raised:
        Program.read(folder / "main.tide")
    assert "INCLUDE reads" in str(raised.value)
    assert (raised.value.line, raised.value.column) == (1, 9)
    assert "salt" not in str(raised.value)


def test_absolute_names_are_no_way_out(folder):
    (folder / "main.tide").write_text(f'INCLUDE "{folder.parent / "shadow.tide"}"\n{QUERY}')
    with pytest.raises(QueryError, match="inside the folder of the program only"):
        Program.read(folder / "main.tide")


def test_a_text_includes_files_of_its_folder_only(folder):
    with pytest.raises(QueryError, match="inside the folder of the program only"):
        Program.parse(f'INCLUDE "../shadow.tide" {QUERY}', folder=folder)


def test_a_part_includes_what_lies_in_the_folder_of_the_whole(folder):
    (folder / "main.tide").write_text('INCLUDE "parts/part.tide"')
    (folder / "parts" / "part.tide").write_text('INCLUDE "../common.tide"')
    (folder / "common.tide").write_text(QUERY)
    assert [query.name for query in Program.read(folder / "main.tide").queries] == ["q"]
