"""What a deployment runs once before its services: what it makes, and that it leaves alone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from containers import Servers
from waybill_shared.access.api_keys import read_keys
from waybill_shared.access.key_ring import load_key_ring
from waybill_shared.contract.topics import topic_specs
from waybill_shared.kafka.admin import make_admin

TIMEOUT_S = 60.0


def set_up(servers: Servers, folder: Path) -> str:
    settings = {
        "WAYBILL_KAFKA": servers.kafka,
        "WAYBILL_TOPIC_PREFIX": f"setup-{folder.name}",
        "WAYBILL_TOKEN_KEYS_FILE": str(folder / "keys" / "token_keys.json"),
        "WAYBILL_API_KEYS_FILE": str(folder / "keys" / "api_keys.json"),
    }
    command = [sys.executable, "-m", "waybill_shared.setup"]
    environment = {**os.environ, **settings}
    return subprocess.check_output(
        command, env=environment, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S
    )


def test_setup_makes_what_services_need_and_changes_nothing_the_second_time(
    servers: Servers, tmp_path: Path
) -> None:
    set_up(servers, tmp_path)
    ring, keys = tmp_path / "keys" / "token_keys.json", tmp_path / "keys" / "api_keys.json"
    assert load_key_ring(ring).active == 1
    assert read_keys(keys).keys == ()
    for file in (ring, keys):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    wanted = [f"setup-{tmp_path.name}.{spec.name}" for spec in topic_specs()]
    assert make_admin(servers.kafka).identify(wanted).keys() == set(wanted)

    before = ring.read_bytes(), keys.read_bytes()
    assert '"topics": 0' in set_up(servers, tmp_path)
    assert (ring.read_bytes(), keys.read_bytes()) == before
