"""What `waybill ps` says of drivers."""

from pathlib import Path

from waybill_local.drivers import count_drivers


def test_drivers_are_counted_by_whether_they_run_a_pipeline(tmp_path: Path) -> None:
    for name, runs in (("a", ["uid"]), ("b", []), ("c", [])):
        folder = tmp_path / "stage_runner" / "drivers" / name
        (folder / "runs").mkdir(parents=True)
        (folder / "home.json").touch()
        for uid in runs:
            (folder / "runs" / uid).touch()
    assert str(count_drivers(tmp_path)) == "1 at work, 2 spare"


def test_stack_that_has_started_none_has_none(tmp_path: Path) -> None:
    assert str(count_drivers(tmp_path)) == "0 at work, 0 spare"
