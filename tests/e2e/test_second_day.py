"""What a user does on the second day, with the docs and the command line alone."""

import json
from pathlib import Path

from e2e.command_line import Run

MANIFEST = """
version: 1
name: day
state: stopped
inputs:
  - name: shop
    kafka: {topic: day.shop}
    schema: "id BIGINT, amount DOUBLE"
stages:
  - name: load
    inputs: [shop]
    sinks:
      - {name: rows, kafka: {topic: day.rows}}
      - {name: lake, iceberg: {table: raw.day}}
"""
SHARED = MANIFEST.replace("day.rows}", "day.rows, shared: true}").replace(
    "raw.day}", "raw.day, shared: true}"
)
TARGETS = {"rows": "kafka day.rows", "lake": "iceberg lakehouse.raw.day"}


def named(manifest: str, name: str) -> str:
    return manifest.replace("name: day", f"name: {name}", 1)


def test_a_copied_manifest_is_noticed_and_may_be_meant(run: Run, tmp_path: Path) -> None:
    (tmp_path / "day.yaml").write_text(MANIFEST)
    run("apply", "-f", "day.yaml")

    # The same manifest under another name would write every row once more.
    copy = tmp_path / "pays.yaml"
    copy.write_text(named(MANIFEST, "pays"))
    for command, code in (("check", 1), ("diff", 1), ("apply", 2)):
        refused = run(command, "-f", "pays.yaml", code=code)
        said = refused.stdout + refused.stderr
        for sink, target in TARGETS.items():
            line = MANIFEST[: MANIFEST.index(f"name: {sink}")].count("\n") + 1
            assert f"pays.yaml:{line}:" in said
            assert f"{target} is written by sink {sink!r} of pipeline 'day', too" in said
        assert "--yes" in said
    assert "pays" not in run("get").stdout

    # Whoever wants that says so: at once, or in both manifests.
    warned = run("apply", "-f", "pays.yaml", "--yes")
    assert "is written by sink 'lake' of pipeline 'day', too" in warned.stderr
    (tmp_path / "day.yaml").write_text(SHARED)
    assert run("diff", "-f", "day.yaml").stdout.count("shared is true; no effect on rows") == 2
    run("apply", "-f", "day.yaml")
    copy.write_text(named(SHARED, "third"))
    assert "pipeline 'day'" in run("apply", "-f", "pays.yaml", code=2).stderr  # `pays` does not
    copy.write_text(named(SHARED, "pays"))
    run("apply", "-f", "pays.yaml")
    copy.write_text(named(SHARED, "third"))
    assert "pipeline 'day' and 1 more, too" in run("apply", "-f", "pays.yaml").stderr


def test_a_deletion_says_what_it_costs_and_what_stays(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "dusk.yaml"
    file.write_text(MANIFEST.replace("day", "dusk"))
    run("apply", "-f", "dusk.yaml")
    sent = run("send", "dusk", "shop", '{"id": 1, "amount": 10}', "-o", "json")
    token = json.loads(sent.stdout)["token"]

    costs = run("delete", "dusk", code=2).stderr
    assert "end lost, pipeline_deleted" in costs
    assert "stays: topics dusk.shop, dusk.rows" in costs
    assert "stays: iceberg lakehouse.raw.dusk" in costs
    assert "--yes" in costs
    run("delete", "dusk", "--yes")
    run("token", "wait", token, code=3)

    # What it wrote is still there, as the next one learns.
    file.write_text(MANIFEST.replace("day", "dusk").replace("name: dusk", "name: dawn", 1))
    noted = run("apply", "-f", "dusk.yaml").stderr
    for target in ("kafka dusk.rows", "iceberg lakehouse.raw.dusk"):
        assert f"{target} was written by" in noted
    assert "of pipeline 'dusk', deleted since; what it wrote stays there" in noted
