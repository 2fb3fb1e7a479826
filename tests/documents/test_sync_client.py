"""The client without an event loop is made from the one with it."""

from infra.client.render import MADE, modules


def test_the_sync_client_is_what_the_script_makes() -> None:
    made = dict(modules())

    assert {*MADE.glob("*.py")} == {*made}
    different = [path.name for path, text in made.items() if path.read_text() != text]
    assert not different, "run `python -m infra.client.render`"
