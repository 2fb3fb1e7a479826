"""Locked jars: parsed, retrieved once, and refused when they are not what was locked."""

import hashlib
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from waybill_local import get_jars, jars, room, shown
from waybill_local.errors import StackError
from waybill_local.jars import (
    ROOTS,
    SPARK,
    Download,
    Jar,
    JarSet,
    jar_set,
    parse_lock,
    retrieve,
    root,
)
from waybill_local.java import Java
from waybill_shared.process import archives

COORDINATES = ("org.example:one:1.0", "org.example:two:2.1")
FakeIvy = Callable[..., Java]


def make_set(*contents: str) -> JarSet:
    jars = (
        Jar(coordinate=coordinate, sha256=hashlib.sha256(content.encode()).hexdigest())
        for coordinate, content in zip(COORDINATES, contents, strict=True)
    )
    return JarSet(name="tool", jars=tuple(jars))


@pytest.fixture
def fake_ivy(tmp_path: Path, cache: Path) -> FakeIvy:
    """Stands for `java -jar ivy.jar`: writes the two jars, says so, counts its runs."""

    def make(one: str = "one", two: str = "two", *, code: int = 0, says: str = "") -> Java:
        path = tmp_path / "java"
        path.write_text(
            f"""#!/bin/sh
echo run >> {tmp_path}/runs
while [ "$1" != "-retrieve" ]; do shift; done
folder=$(dirname "$2"); mkdir -p "$folder"
printf '%s' '{one}' > "$folder/one-1.0.jar"
echo '	[SUCCESSFUL ] org.example#one;1.0!one.jar (12ms)'
printf '%s' '{two}' > "$folder/two-2.1.jar"
echo '	[SUCCESSFUL ] org.example#two;2.1!two.jar (12ms)'
echo '{says}'
exit {code}
"""
        )
        path.chmod(0o755)
        return Java(path=path, version="17", bundled=False)

    return make


def ignore(progress: Download) -> None:
    pass


def left_over() -> list[str]:
    """What lies beside the retrieved sets, other than lock files."""
    return [path.name for path in root().iterdir() if not path.name.endswith(".lock")]


def test_lock_is_read_by_sets() -> None:
    digest = "a" * 64
    sets = parse_lock(
        f"# made by …\n\n[kafka]\norg.a:b:1 {digest}\n\n[spark]\norg.c:d:2 {digest}\n"
    )
    assert sets["kafka"].jars == (Jar(coordinate="org.a:b:1", sha256=digest),)
    assert sets["spark"].jars[0].file_name == "d-2.jar"


@pytest.mark.parametrize(
    "line", ["org.a:b:1", "org.a:b:1 abc", f"org.a:b {'a' * 64}", f"org.a:b:1 {'a' * 64} extra"]
)
def test_damaged_lock_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match=r"jars\.lock line 2"):
        parse_lock(f"[kafka]\n{line}\n")


def test_shipped_lock_holds_all_that_was_asked_for() -> None:
    for name in ROOTS:
        locked = {jar.coordinate for jar in jar_set(name).jars}
        assert locked >= set(ROOTS[name])
    assert len(jar_set(SPARK).jars) == len(ROOTS[SPARK])


def test_another_checksum_means_another_folder(cache: Path) -> None:
    assert make_set("one", "two").folder != make_set("one", "two changed").folder
    assert make_set("one", "two").folder.parent == cache / "jars"


def test_jars_are_retrieved_once(fake_ivy: FakeIvy, tmp_path: Path) -> None:
    wanted, seen = make_set("one", "two"), list[Download]()
    folder = retrieve(wanted, java=fake_ivy(), progress=seen.append)
    assert [path.read_text() for path in wanted.class_path] == ["one", "two"]
    assert [(p.done, p.total) for p in seen] == [(0, 2), (1, 2), (2, 2), (2, 2)]
    assert seen[-1].bytes == len("onetwo")
    assert retrieve(wanted, java=fake_ivy(), progress=ignore) == folder
    assert (tmp_path / "runs").read_text() == "run\n"


def test_jar_with_another_checksum_is_refused_and_not_kept(fake_ivy: FakeIvy) -> None:
    wanted = make_set("one", "two")
    with pytest.raises(StackError, match=r"org\.example:two:2\.1 is not the one that was locked"):
        retrieve(wanted, java=fake_ivy(two="two, but changed on its way"), progress=ignore)
    assert not wanted.present
    assert left_over() == []


def test_failed_download_says_why_and_leaves_nothing(fake_ivy: FakeIvy) -> None:
    wanted = make_set("one", "two")
    java = fake_ivy(code=1, says=":: org.example#two;2.1: not found")
    with pytest.raises(StackError, match="not found") as raised:
        retrieve(wanted, java=java, progress=ignore)
    assert "WAYBILL_IVY_SETTINGS" in raised.value.fix
    assert left_over() == []


def test_untrusted_certificate_names_the_setting_that_helps(fake_ivy: FakeIvy) -> None:
    java = fake_ivy(code=1, says="Server access error: PKIX path building failed")
    with pytest.raises(StackError) as raised:
        retrieve(make_set("one", "two"), java=java, progress=ignore)
    assert "SSL_CERT_FILE" in raised.value.fix


def test_interrupted_download_leaves_nothing(fake_ivy: FakeIvy) -> None:
    def interrupt(progress: Download) -> None:
        if progress.done == 1:
            raise KeyboardInterrupt

    wanted = make_set("one", "two")
    with pytest.raises(KeyboardInterrupt):
        retrieve(wanted, java=fake_ivy(), progress=interrupt)
    assert not wanted.present
    assert left_over() == []


def test_interrupted_retrieval_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shown, "retrieve_all", interrupt)
    assert get_jars.main([]) == 130
    assert capsys.readouterr().err.startswith("\ninterrupted: run it again")


def test_cache_that_cannot_be_written_to_is_named(
    fake_ivy: FakeIvy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_ivy()
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(StackError, match="cannot be kept") as raised:
        retrieve(make_set("one", "two"), java=java, progress=ignore)
    assert "XDG_CACHE_HOME" in raised.value.fix


def test_full_disk_is_told_as_one(fake_ivy: FakeIvy, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "java.io.IOException: No space left on device"
    with pytest.raises(StackError) as raised:
        retrieve(make_set("one", "two"), java=fake_ivy(code=1, says=says), progress=ignore)
    assert "make room" in raised.value.fix
    monkeypatch.setattr(room, "free_bytes", lambda folder: 100_000_000)
    with pytest.raises(StackError, match="too full for the jars"):
        shown.retrieve_all([make_set("one", "two")], fake_ivy())
    assert left_over() == []


def test_all_missing_sets_are_counted_in_one_line(
    fake_ivy: FakeIvy, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [make_set("one", "two"), replace(make_set("one", "two"), name="other")]
    shown.retrieve_all(sets, fake_ivy())
    shown.retrieve_all(sets, fake_ivy())
    begin, end = capsys.readouterr().out.splitlines()
    assert begin == "jars      of tool and other"
    assert end.startswith("jars      4 of tool and other, 0 MB downloaded")


def test_what_a_killed_download_left_is_removed_by_the_next(fake_ivy: FakeIvy) -> None:
    wanted = make_set("one", "two")
    (root() / f".{wanted.name}-killed" / "jars").mkdir(parents=True)
    retrieve(wanted, java=fake_ivy(), progress=ignore)
    assert left_over() == [wanted.folder.name]


def test_two_processes_at_once_download_once(fake_ivy: FakeIvy, tmp_path: Path) -> None:
    java, wanted = fake_ivy(), make_set("one", "two")
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_retrieve, args=(wanted, java)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(timeout=20)
    assert [process.exitcode for process in both] == [0, 0]
    assert wanted.present
    assert (tmp_path / "runs").read_text() == "run\n"


def _retrieve(wanted: JarSet, java: Java) -> None:
    retrieve(wanted, java=java, progress=ignore)


def test_set_that_nobody_knows_is_told_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert get_jars.main(["spark", "flink"]) == 2
    assert "kafka | spark" in capsys.readouterr().err


def test_jars_of_pyspark_are_linked_once_and_never_in_part(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name in ("one.jar", "two.jar", "spark-mllib_2.13-4.jar"):
        (own / name).write_text(name)
    monkeypatch.setattr(archives, "pyspark_jars", lambda: own)
    wanted = make_set("one", "two")
    links = archives.links_of(wanted.folder)

    def refuse(link: Path, target: Path) -> None:
        if target.name == "two.jar":
            raise OSError("another disk")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "hardlink_to", refuse)
        jars.link_pyspark(wanted)
    assert not links.exists()
    jars.link_pyspark(wanted)
    assert sorted(jar.name for jar in links.iterdir()) == ["one.jar", "two.jar"]
    assert (links / "one.jar").samefile(own / "one.jar")
    assert left_over() == [links.name]
