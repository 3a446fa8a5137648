import re
import subprocess

from laudo.server.config import SETTINGS
from shell import LAUDO, Shell


def test_config_shows_every_setting_with_its_source(empty: Shell) -> None:
    items = empty.lists("config", "--port", "9000")
    assert [item["setting"] for item in items] == [setting.name for setting in SETTINGS]
    sources = {str(item["setting"]): item["source"] for item in items}
    assert (sources["port"], sources["store"], sources["host"]) == ("--port", "LAUDO_STORE", "default")


def test_config_masks_passwords(empty: Shell) -> None:
    shown = empty.prints("config", "--store", "postgresql://laudo:hunter2@db/laudo")
    assert "postgresql://laudo:***@db/laudo" in shown
    assert "hunter2" not in shown


def test_config_reads_the_file_of_the_working_folder(empty: Shell) -> None:
    (empty.folder / "laudo.toml").write_text("port = 9001\n")
    done = subprocess.run(
        [LAUDO, "config"], check=True, capture_output=True, text=True, cwd=empty.folder, env=empty.environment
    )
    assert re.search(r"^port +9001 +laudo\.toml$", done.stdout, re.MULTILINE)


def test_migrate_may_be_repeated(fresh: Shell) -> None:
    assert fresh.prints("migrate").startswith("applied 0001_")
    assert fresh.prints("migrate") == "the store is current"
