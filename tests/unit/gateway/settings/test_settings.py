import typing
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import SettingsError
from gateway.settings import Secret, Settings, settings_rows, settings_table
from tests.support.tables import read_pairs

ACCEPTED: dict[str, list[tuple[str, Any]]] = read_pairs("settings-accepted")
WORDS = ["ON", "true", "1", "yes", "on,off"]
NUMBERS = ["many", "1e3", "1_000", "１２", "nan", "inf", "5s", "0x10", "1" * 5000, "is 5", "--1"]
REFUSED: dict[str, list[str]] = {
    name: [value.replace("<many ones>", "1" * 5000) for value in values]
    for name, values in read_pairs("settings-refused").items()
}
VARIABLES = [row[0] for row in settings_rows()]
FORMS = {row[0]: row[2] for row in settings_rows()}


def field_of(variable: str) -> str:
    return variable.removeprefix("CANDOR_").lower()


def default_of(variable: str) -> Any:
    return getattr(Settings(), field_of(variable))


def read(**environ: str) -> Settings:
    return Settings.from_environ(environ)


def test_every_variable_is_tried_with_good_and_bad_values() -> None:
    assert list(ACCEPTED) == VARIABLES
    assert list(REFUSED) == VARIABLES


def meant(value: Any) -> Any:
    """Return a value of the table; what JSON does not have stands there by its kind."""
    kinds: dict[str, Any] = {
        "path": lambda path: Path(path).expanduser(),
        "secret": Secret,
        "words": tuple,
    }
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return kinds[kind](text)
    return value


def test_a_good_value_is_read() -> None:
    for variable, readings in ACCEPTED.items():
        for text, value in readings:
            settings = read(**{variable: text})
            found = getattr(settings, field_of(variable))
            assert found == meant(value), (variable, text)
            assert type(found) is type(meant(value)) or isinstance(found, Path)
            assert replace(settings, **{field_of(variable): default_of(variable)}) == Settings()


def test_a_wrong_value_is_told_with_its_variable_fault_and_accepted_form() -> None:
    for variable, texts in REFUSED.items():
        for text in texts:
            with pytest.raises(SettingsError) as caught:
                read(**{variable: text})
            said = str(caught.value)
            assert said.startswith(f"{variable}=")
            assert said.endswith(f"; it takes {FORMS[variable]}")
            assert " " in said.rpartition(": ")[2].partition("; it takes")[0]
            assert len(said) < 250
            assert said.isprintable()


def test_a_secret_in_the_wrong_variable_is_not_repeated() -> None:
    secret = "sk-ant-api03-" + "Zq8vN3kPw7Lx2TyR5sJd" * 4
    for variable in VARIABLES:
        with pytest.raises(SettingsError) as caught:
            read(**{variable: f"{secret}\0"})
        assert "Zq8vN3kPw7" not in str(caught.value)
    with pytest.raises(SettingsError) as caught:
        read(CANDOR_EMBEDDINGS_KEY="hunter2\0")
    assert "hunter2" not in str(caught.value)


NEAREST = {
    "CANDOR_PROT": "CANDOR_PORT",
    "CANDOR_WORKPLACE": "CANDOR_WORKSPACE",
    "CANDOR_LOGDIR": "CANDOR_LOG_DIR",
    "CANDOR_TURN_TIMEOUT": "CANDOR_TURN_TIMEOUT_S",
    "CANDOR_MAX_LIVE": "CANDOR_MAX_LIVE_MB",
    "CANDOR_HOSTNAME": "CANDOR_HOST",
}


def test_an_unknown_variable_names_the_nearest_and_not_its_value() -> None:
    for variable in (*NEAREST, "CANDOR_port", "CANDOR_", "CANDOR_深", "CANDOR_X" * 500):
        with pytest.raises(SettingsError) as caught:
            read(**{variable: "hunter2"})
        said = str(caught.value)
        assert variable in said
        assert "hunter2" not in said
        assert any(f"did you mean {known}?" in said for known in VARIABLES)
        assert NEAREST.get(variable, "") in said


def test_an_empty_variable_counts_as_unset_and_what_is_not_ours_is_not_looked_at() -> None:
    for nothing in ("", " ", "\t"):
        assert read(**dict.fromkeys(VARIABLES, nothing)) == Settings()
    assert read(PATH="/bin", CANDORS="x", candor_port="x", XCANDOR_PORT="x") == Settings()


def test_the_defaults_are_those_of_the_contract() -> None:
    known = Settings()
    assert (known.host, known.port, known.max_body_bytes) == ("127.0.0.1", 8000, 1024 * 1024)
    directories = (known.workspace, known.data_dir, known.log_dir)
    assert directories == (Path("./workspace"), Path("./.candor"), Path("./logs"))
    assert (known.prewarmed_clients, known.stale_client_grace_s) == (1, 20)
    assert (known.doom_loop_threshold, known.recall_deadline_ms) == (5, 300)
    assert (known.approvals, known.approval_timeout_s) == ("off", 600)
    assert (known.sandbox, known.extract, known.demo) == ("auto", "off", "auto")
    assert (known.model, known.tokens_file, known.policy_file) == (None, None, None)


def test_settings_are_frozen_and_hold_what_their_types_say() -> None:
    settings = Settings()
    with pytest.raises(FrozenInstanceError):
        settings.port = 1  # type: ignore[misc]
    for name, kind in typing.get_type_hints(Settings).items():
        value = getattr(settings, name)
        accepted = typing.get_args(kind) or (kind,)
        if typing.get_origin(kind) is typing.Literal:
            assert value in accepted
        elif typing.get_origin(kind) is tuple:
            assert value == ()
        else:
            assert isinstance(value, accepted)
            assert not isinstance(value, bool)


def test_the_table_has_a_row_for_each_setting() -> None:
    lines = settings_table().splitlines()
    assert lines[0] == "| variable | default | takes | what it does |"
    assert [line.split("`")[1] for line in lines[2:]] == VARIABLES
    assert settings_table().endswith("\n")
    for line in lines:
        assert line.count(" | ") == 3, f"a cell holds a bar: {line}"
    for variable, default, takes, effect in settings_rows():
        assert takes
        assert effect.endswith(".")
        assert not default or read(**{variable: default}) == Settings(), "a default is accepted"
