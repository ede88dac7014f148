"""Settings in files: one TOML file with the names of settings, and files with a secret each."""

import pytest

from service.errors import SettingsInvalid
from service.settings import load_settings
from service.settings_files import use_config
from service.settings_table import unknown_variables


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes the file that settings are read from."""

    def write(text):
        path = tmp_path / "forestall.toml"
        path.write_text(text)
        monkeypatch.setenv("FORESTALL_CONFIG", str(path))

    return write


def test_a_file_has_settings_and_the_environment_takes_precedence(config, monkeypatch):
    config('api_port = 9000\nlog_level = "debug"\n[limits]\nmax_constraints = 7\nmax_tables = 3\n')
    monkeypatch.setenv("FORESTALL_API_PORT", "9001")
    monkeypatch.setenv("FORESTALL_LIMITS__MAX_TABLES", "4")
    settings = load_settings()
    assert (settings.api_port, settings.log_level) == (9001, "DEBUG")
    assert (settings.limits.max_constraints, settings.limits.max_tables) == (7, 4)
    assert unknown_variables() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api_prot = 9000", r"api_prot is not a setting \(did you mean api_port\?\)"),
        ("[limits]\nmax_tabels = 1", r"limits.max_tabels is not a setting \(did you mean max_tables\?\)"),
        ("api_port = ", "is not a TOML file"),
        ("api_port = 99999", "FORESTALL_API_PORT"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(config, text, message):
    config(text)
    with pytest.raises(SettingsInvalid, match=message):
        load_settings()


def test_a_secret_may_be_in_a_file_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("a-long-secret\n")
    monkeypatch.setenv("FORESTALL_API_KEY_FILE", str(tmp_path / "key"))
    key = load_settings().api_key
    assert key is not None
    assert key.get_secret_value() == "a-long-secret"
    assert unknown_variables() == []
    monkeypatch.setenv("FORESTALL_API_KEY", "another-secret")
    key = load_settings().api_key
    assert key is not None
    assert key.get_secret_value() == "another-secret", "as a process gets it that is started with what was read"
    monkeypatch.delenv("FORESTALL_API_KEY")
    monkeypatch.setenv("FORESTALL_API_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(SettingsInvalid, match=r"FORESTALL_API_KEY_FILE: .*none cannot be read"):
        load_settings()


def test_processes_that_this_one_starts_read_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTALL_CONFIG", "")
    path = tmp_path / "x.toml"
    path.write_text("api_port = 9002\n")
    use_config(path)
    assert load_settings().api_port == 9002
