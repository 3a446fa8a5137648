import os
import pickle
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from laudo.server import config
from laudo.server.config import SETTINGS, ConfigError, Settings
from laudo.server.config.processors import cores

PASSWORD = "hunter2"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "laudo.toml"
    path.write_text("port = 9001\nmax_rows = 50\nlog = false\n")
    return path


def test_without_any_settings_the_defaults_apply() -> None:
    assert config.load({}, {}, None) == Settings()


def test_the_file_wins_over_defaults(file: Path) -> None:
    settings = config.load({}, {}, file)
    assert (settings.port, settings.max_rows, settings.log) == (9001, 50, False)


def test_the_settings_file_may_begin_with_a_byte_order_mark(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfport = 8001\n")
    assert config.load({}, {}, file).port == 8001


def test_the_environment_wins_over_the_file(file: Path) -> None:
    settings = config.load({}, {"LAUDO_PORT": "9002"}, file)
    assert (settings.port, settings.max_rows) == (9002, 50)


def test_flags_win_over_the_environment(file: Path) -> None:
    settings = config.load({"port": "9003", "max_rows": None}, {"LAUDO_PORT": "9002"}, file)
    assert (settings.port, settings.max_rows) == (9003, 50)


def test_laudo_config_names_the_file(file: Path) -> None:
    assert config.load({}, {"LAUDO_CONFIG": str(file)}, None).port == 9001
    assert config.load({}, {"LAUDO_CONFIG": ""}, None).port == 8000


def test_a_dangling_link_as_settings_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("laudo.toml").symlink_to("unmounted/laudo.toml")
    with pytest.raises(ConfigError, match=r"^cannot read the settings file laudo\.toml: No such file"):
        config.load({}, {}, None)


def test_resolve_states_the_source_of_each_setting(file: Path) -> None:
    _, sources = config.resolve({"host": "::1"}, {"LAUDO_PORT": "9002"}, file)
    assert list(sources) == [setting.name for setting in SETTINGS]
    assert sources["host"] == "--host"
    assert sources["port"] == "LAUDO_PORT"
    assert sources["max_rows"] == str(file)
    assert sources["store"] == "default"


def test_an_unknown_key_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "laudo.toml"
    path.write_text("max_row = 50\n")
    with pytest.raises(ConfigError) as error:
        config.load({}, {}, path)
    assert str(error.value) == f"unknown key 'max_row' in {path}; hint: did you mean max_rows?"


def test_an_unknown_variable_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError) as error:
        config.load({}, {"LAUDO_MAXROWS": "50"}, None)
    assert str(error.value) == "unknown environment variable 'LAUDO_MAXROWS'; hint: did you mean LAUDO_MAX_ROWS?"


@pytest.mark.parametrize(
    ("given", "meant"),
    [("LAUDO_KEY", "KEY_FILE"), ("LAUDO_POOL", "POOL_SIZE"), ("LAUDO_RATE", "RATE_LIMIT"), ("LAUDO_PROT", "PORT")],
)
def test_suggestions_ignore_the_common_prefix_of_variables(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"; hint: did you mean LAUDO_{meant}\?$"):
        config.load({}, {given: "50"}, None)


def test_an_unrecognizable_variable_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="hint: the known ones are LAUDO_STORE, LAUDO_KEY_FILE"):
        config.load({}, {"LAUDO_ZZZZZZZZZZ": "50"}, None)


@pytest.mark.parametrize("name", [*config.FOREIGN, "LAUDO_TEST_PG"])
def test_variables_of_other_parts_of_laudo_are_accepted(name: str, file: Path) -> None:
    assert config.load({}, {name: str(file)}, file).port == 9001


def test_variables_that_kubernetes_sets_for_a_service_are_ignored(file: Path) -> None:
    told = {
        "LAUDO_SERVICE_HOST": "10.43.0.7",
        "LAUDO_SERVICE_PORT": "8000",
        "LAUDO_SERVICE_PORT_HTTP": "8000",
        "LAUDO_PORT": "tcp://10.43.0.7:8000",
        "LAUDO_PORT_8000_TCP": "tcp://10.43.0.7:8000",
        "LAUDO_PORT_8000_TCP_PROTO": "tcp",
        "LAUDO_PORT_8000_TCP_PORT": "8000",
        "LAUDO_PORT_8000_TCP_ADDR": "10.43.0.7",
        "LAUDO_PORT_53_UDP": "udp://[fd00::7]:53",
    }
    assert config.load({}, told, file) == config.load({}, {}, file)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAUDO_PORT", "http://10.43.0.7:8000"),
        ("LAUDO_PORT_", "8000"),
        ("LAUDO_PORTS", "tcp://10.43.0.7:8000"),
        ("LAUDO_PORT_TCP", "tcp://10.43.0.7:8000"),
        ("LAUDO_PORT_8000_TCP_HOST", "10.43.0.7"),
        ("LAUDO_SERVICE", "8000"),
        ("LAUDO_SERVICE_PORTS", "8000"),
        ("LAUDO_SERVER_TIMING", "tcp://10.43.0.7:8000"),
    ],
)
def test_variables_that_only_resemble_those_of_kubernetes_are_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^(unknown environment variable '{name}'|.* \\(from {name}\\) is not)"):
        config.load({}, {name: value}, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store", "laudo.db"),
        ("store", "://laudo.db"),
        ("store", ""),
        ("key_file", ""),
        ("host", "two words"),
        ("host", ""),
        ("host", "."),
        ("host", "laudo..example"),
        ("metrics_host", "a" * 64),
        ("port", "0"),
        ("port", "65536"),
        ("port", "8000.0"),
        ("port", "+8000"),
        ("port", "٨٠٠٠"),
        ("port", "1" * 5000),
        ("workers", "0"),
        ("max_rows", "0"),
        ("max_rows", "30"),
        ("max_rows", "10025"),
        ("rate_limit", "-1"),
        ("allowed_origins", "*"),
        ("allowed_origins", "https://a.example/path"),
        ("allowed_origins", "null"),
        ("allowed_origins", "https://a.example:443"),
        ("allowed_origins", "http://a.example:80,https://a.example"),
        ("server_timing", "maybe"),
        ("read_store", "sqlite:///laudo.db"),
        ("read_store", "postgresql://one/laudo two"),
        ("read_store", "one,postgresql://two/laudo"),
        ("read_lag_ms", "199"),
        ("metrics_port", "-1"),
        ("log", ""),
        ("rehearse", "503"),
        ("rehearse", "503=-1"),
        ("rehearse", "503=101"),
        ("rehearse", "503=60,429=60"),
        ("rehearse", "503=10,503=10"),
        ("rehearse", "400=10"),
        ("rehearse", "404=10"),
        ("rehearse", "5=10"),
        ("rehearse", "cut"),
        ("rehearse", "cuts=1"),
        ("rehearse", "0.0001s=10"),
        ("rehearse", "1000s=10"),
        ("rehearse", "503=10;429=10"),
    ],
)
def test_an_invalid_value_is_refused_with_its_source_and_accepted_values(name: str, value: str) -> None:
    accepted = next(setting.accepts for setting in SETTINGS if setting.name == name)
    with pytest.raises(ConfigError) as error:
        config.load({}, {f"LAUDO_{name.upper()}": value}, None)
    assert str(error.value) == f"{name} (from LAUDO_{name.upper()}) is not {accepted}"


@pytest.mark.parametrize("text", ["port = 8000.0", "port = true", "log = 2", "port = {a = 1}", "host = 1e5"])
def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "laudo.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"\(from .*laudo\.toml\) is not "):
        config.load({}, {}, path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"port =", "is not valid TOML"), (b"host = '\xff'", "is not UTF-8"), (None, "cannot read the settings file")],
)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "laudo.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        config.load({}, {}, path)


@pytest.mark.parametrize(
    "value", ["https://a.example, http://localhost:3000", ["https://a.example", "http://localhost:3000"]]
)
def test_origins_are_a_toml_list_or_a_text_separated_by_commas(value: object) -> None:
    settings = config.load({"allowed_origins": value}, {}, None)
    assert settings.allowed_origins == ("https://a.example", "http://localhost:3000")


@pytest.mark.parametrize("value", ["503=10, 5s=2,", ["503=10", "5s=2"]])
def test_rehearse_is_a_toml_list_or_a_text_separated_by_commas(value: object) -> None:
    assert config.load({"rehearse": value}, {}, None).rehearse == ("503=10", "5s=2")


@pytest.mark.parametrize("value", ["401=25,429=25,500=25,503=25", "999.999s=100", "cut=100", "0s=0", ""])
def test_rehearsed_percentages_may_add_up_to_0_or_100(value: str) -> None:
    assert ",".join(config.load({"rehearse": value}, {}, None).rehearse) == value


ONE = "postgresql://laudo:hunter2@one,two:5433/laudo?target_session_attrs=any"
OTHER = "postgres://three/laudo"


@pytest.mark.parametrize(
    "value",
    [f"{ONE},{OTHER}", f"{ONE}, {OTHER}", f" {ONE} {OTHER} ", f"{ONE},,{OTHER},", [ONE, OTHER]],
)
def test_replicas_are_separated_by_commas_or_blanks(value: object) -> None:
    assert config.load({"read_store": value}, {}, None).read_store == (ONE, OTHER)


def test_replicas_are_shown_without_passwords_in_a_form_that_parses() -> None:
    settings = config.load({"read_store": f"{ONE},{ONE}"}, {}, None)
    [setting] = [setting for setting in SETTINGS if setting.name == "read_store"]
    shown = setting.show(settings)
    assert setting.parse(shown) == (ONE.replace("hunter2", "***"),) * 2
    assert shown in repr(settings)


@pytest.mark.parametrize("text", ["true", "TRUE", "1", "yes", "on"])
def test_switches_have_several_spellings(text: str) -> None:
    assert config.load({}, {"LAUDO_SERVER_TIMING": text}, None).server_timing


@pytest.mark.parametrize(
    "store",
    [
        f"postgresql://laudo:{PASSWORD}@db/laudo",
        f"postgresql://laudo:{PASSWORD}@{PASSWORD}@db/laudo",
        f"postgresql://laudo:{PASSWORD}/{PASSWORD}@db/laudo",
        f"postgresql://db/laudo?user=laudo&password={PASSWORD}",
        f"postgresql://db/laudo?sslpassword={PASSWORD}&user=laudo",
        f"postgresql://db/laudo?oauth_client_secret={PASSWORD}&user=laudo",
        f"postgresql://db/laudo?scram_client_key={PASSWORD}&user=laudo",
        f"postgresql://db/laudo?user=laudo&pass%77ord={PASSWORD}",
        f"postgresql://laudo@server:{PASSWORD}@db/laudo",
        f"postgresql://laudo:{PASSWORD}%40db/laudo",
    ],
)
def test_no_password_of_a_store_is_ever_shown(store: str) -> None:
    settings = config.load({"store": store}, {}, None)
    assert settings.store == store
    shown = repr(settings) + "".join(setting.show(settings) for setting in SETTINGS)
    assert PASSWORD not in shown
    assert "***" in shown


@pytest.mark.parametrize("name", ["password", "sslpassword", "oauth_client_secret", "pass%77ord"])
def test_a_store_url_is_shown_unchanged_except_for_the_password(name: str) -> None:
    store = f"postgresql://db/laudo?user=laudo&{name}={PASSWORD}&sslmode=require"
    [setting] = [setting for setting in SETTINGS if setting.name == "store"]
    assert setting.show(config.load({"store": store}, {}, None)) == store.replace(PASSWORD, "***")


def test_the_refusal_of_a_store_does_not_contain_its_password() -> None:
    with pytest.raises(ConfigError) as error:
        config.load({"store": f"laudo:{PASSWORD}@db"}, {}, None)
    assert PASSWORD not in str(error.value)


def test_the_settings_table_matches_the_settings_record() -> None:
    assert [setting.name for setting in SETTINGS] == [field.name for field in fields(Settings)]
    for setting in SETTINGS:
        assert setting.default == getattr(Settings(), setting.name)
        assert setting.about.endswith(".")


def test_the_bounds_of_an_accepted_range_are_accepted() -> None:
    found = [(setting, re.search("from ([0-9]+) to ([0-9]+)", setting.accepts)) for setting in SETTINGS]
    ranges = [(setting, ends.groups()) for setting, ends in found if ends]
    assert len(ranges) > 5
    for setting, ends in ranges:
        assert [str(setting.parse(end)) for end in ends] == list(ends)


def test_every_default_can_be_parsed_from_its_text() -> None:
    for setting in SETTINGS:
        assert setting.parse(setting.show(Settings())) == setting.default


def test_flags_and_variables_are_derived_from_the_name() -> None:
    names = {setting.name: (setting.flag, setting.variable) for setting in SETTINGS}
    assert names["max_rows"] == ("--max-rows", "LAUDO_MAX_ROWS")


def test_settings_are_frozen_and_can_be_pickled() -> None:
    settings = Settings(port=9000)
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own bytes
    with pytest.raises(FrozenInstanceError):
        settings.port = 1  # type: ignore[misc]


def test_workers_default_to_the_cores_of_this_process() -> None:
    assert Settings().workers == cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"": "max 100000", "a": "max 100000", "a/b": "max 100000"}, 4),
        ({"": "max 100000", "a": "200000 100000", "a/b": "max 100000"}, 2),
        ({"a": "100000 100000", "a/b": "300000 100000"}, 1),
        ({"a/b": "150000 100000"}, 2),
        ({"a/b": "5000 100000"}, 1),
        ({"": "100000 50000"}, 2),
        ({"a/b": "800000 100000"}, 4),
        ({"a/b": "?"}, 4),
        ({}, 4),
    ],
)
def test_workers_default_to_the_cpu_limit_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(4)), raising=False)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/elsewhere\n0::/a/b\n")
    for group, limit in limits.items():
        folder = tmp_path / "sys/fs/cgroup" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.max").write_text(f"{limit}\n")
    assert cores(tmp_path) == expected


def test_without_control_groups_the_available_processors_are_counted(tmp_path: Path) -> None:
    assert cores(tmp_path) == len(os.sched_getaffinity(0))
