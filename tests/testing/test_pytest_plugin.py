"""pytest collects and runs the tests of programs."""

import subprocess
import sys

PROGRAM = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
TEST Opens GIVEN INSERT { :d :is :open } EXPECT Open(:d)
TEST Shuts
  GIVEN INSERT { :d :is :open }
  EXPECT NOT Open
"""


def test_programs_are_collected(tmp_path):
    (tmp_path / "doors.tide").write_text(PROGRAM)
    (tmp_path / "plain.tide").write_text("QUERY All AS SELECT * { ?s ?p ?o }")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["graphtide.testing.pytest_plugin"]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert "doors.tide:4 TEST Shuts\n- NOT Open\n+ Open(?door = :d)" in ran.stdout
    assert "plain" not in ran.stdout
