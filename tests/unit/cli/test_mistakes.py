"""What a person may get wrong at a command ends in one clear line and exit code 2, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from docs import reference
from oomrl.cli.account import in_words
from oomrl.cli.main import COMMANDS, main
from oomrl.cli.options import Given
from oomrl.cli.page import beside
from oomrl.settings import load
from tests import databases
from tests.states import made_up

Said = Callable[..., tuple[int, str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command in an empty folder; return its exit code and the line that it ends with on standard error."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in [name for name in os.environ if name.startswith(("OOMRL_", "APCA_", "OPENAI_"))]:
        monkeypatch.delenv(name)

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told = capsys.readouterr().err
        assert "program itself" not in told, told
        shown = told.strip().splitlines()
        assert isinstance(ended.value.code, int)
        return ended.value.code, shown[-1] if shown else ""

    return run


@pytest.fixture
def closed(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state directory that nobody has open, and say to commands where its store is."""
    state = tmp_path / "state"
    made_up(state).store.close()
    for name, value in databases.environment(state).items():
        monkeypatch.setenv(name, value)
    return state


def line(said: tuple[int, str]) -> str:
    """Return the line of a mistake, after seeing that it is one."""
    code, told = said
    assert code == 2 and told.startswith("Error: "), said
    return told


def paths() -> list[tuple[str, str]]:
    """Return each command with each of its options that is a path."""
    return [
        (name, parameter.opts[0])
        for name, command in reference.all_commands()
        for parameter in command.params
        if isinstance(parameter.type, Given) and parameter.opts[0].startswith("--")
    ]


def test_the_path_of_a_variable_that_is_not_set_is_never_the_working_directory(said: Said) -> None:
    """`--state "$STATE"` with an empty STATE would halt, run or restore whatever directory one stands in."""
    asked = paths()
    assert len(asked) > 2 * len(COMMANDS) / 3
    for name, option in asked:
        assert f"'{option}'" in line(said(*name.split()[1:], option, "")), name
    assert list(Path().iterdir()) == []


def test_a_head_of_the_chain_that_is_empty_is_no_check_that_passed(said: Said) -> None:
    assert "N:SHA256" in line(said("audit", "verify", "--head", ""))


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_what_cannot_be_written_where_a_person_said_is_named(place: str, said: Said) -> None:
    Path("file").write_text("mine", "utf-8")
    Path("oomrl.toml").write_text('[accounts.main]\ntape = "builtin"\n', "utf-8")
    asked = (
        ("init", "--tape", "builtin", "--model", "offline", "--endowment", "5", "--state", place),
        ("simulate", "--state", place),
        ("run", "--settings", "oomrl.toml", "--state", place),
        ("once", "judge", "--settings", "oomrl.toml", "--state", place),
        ("arena", "run", "committee", "--seeds", "0", "--out", place),
        ("strategy", "new", place),
        ("restore", "file", "--state", place),
    )
    for words in asked:
        told = line(said(*words))
        assert place in told and ("written" in told or "folder" in told), told
    assert Path("file").read_text("utf-8") == "mine"


def test_a_command_that_could_not_begin_leaves_no_folder(said: Said) -> None:
    asked = (
        ("init", "--tape", "nowhere", "--model", "offline", "--endowment", "5"),
        ("init", "--tape", "builtin", "--model", "offline", "--endowment", "-5"),
        ("init", "--tape", "builtin", "--model", "offline", "--endowment", "5", "--symbols", " , "),
        ("once", "judge"),
        ("run",),
        ("simulate", "--tape", "nowhere"),
        ("restore", "nothing"),
        ("halt", "--reason", "x"),
    )
    for words in asked:
        line(said(*words, "--state", "new"))
        assert not Path("new").exists(), words


def test_without_git_nothing_begins_and_the_doctor_says_why(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git" in line(said("simulate", "--state", "new"))
    assert not Path("new").exists()
    code, told = said("doctor", "--state", "new")
    assert code == 1 and "git" in told


def test_a_folder_of_somebody_elses_is_not_halted(said: Said) -> None:
    """Else a wrong --state would be told as a halt, while the service trades on."""
    Path("notes").mkdir()
    Path("notes/thesis.txt").write_text("mine", "utf-8")
    assert "Nothing was halted" in line(said("halt", "--reason", "x", "--state", "notes"))
    assert [path.name for path in Path("notes").iterdir()] == ["thesis.txt"]
    Path("service").mkdir()
    Path("service/oomrl.toml").write_text("", "utf-8")
    assert said("halt", "--reason", "x", "--state", "service")[0] == 0
    assert Path("service/HALT").is_file()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{}", b"[1]", b'{"arena": "committee"}', b"null"])
def test_what_is_no_record_of_an_arena_is_named(content: bytes, said: Said) -> None:
    Path("run.json").write_bytes(content)
    assert "was none" in line(said("arena", "leaderboard", "run.json"))
    assert "was none" in line(said("arena", "replay", "run.json"))
    assert not Path("leaderboard.html").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08half"])
def test_what_is_no_backup_is_told_in_one_line(content: bytes, said: Said, capsys: pytest.CaptureFixture[str]) -> None:
    Path("backup").write_bytes(content)
    assert "Expected a whole backup in backup" in line(said("restore", "backup", "--check"))
    with tarfile.open("empty.tar.gz", "w:gz"):
        pass
    assert "without manifest.json" in line(said("restore", "empty.tar.gz", "--check"))
    assert "Expected a backup at ." in line(said("restore", ".", "--check"))


def test_an_audit_key_that_is_somebody_elses_is_told_with_the_way_out(said: Said, closed: Path) -> None:
    (closed / "keys" / "audit.key").chmod(0o444)
    for words in (("audit", "verify"), ("audit", "head"), ("audit", "export"), ("people", "list")):
        told = line(said(*words, "--state", str(closed)))
        assert "chmod 600" in told and "service's user" in told


def test_the_end_of_a_damaged_chain_is_refused(said: Said, closed: Path) -> None:
    with (closed / "audit.jsonl").open("a") as chain:
        chain.write('{"half')
    for words in (("verify",), ("head",), ("export",)):
        code, told = said("audit", *words, "--state", str(closed))
        assert code == 1 and told.startswith("Refused: ") and "torn" in told


def test_a_simulation_is_kept_out_of_what_a_service_serves(said: Said) -> None:
    """It would be the run that the service finds in its database, and goes on with."""
    Path("service").mkdir()
    Path("service/daemon.lock").touch()
    for more in ((), ("--fresh",)):
        assert "`oomrl run` serves" in line(said("simulate", "--to", "2001-04-02", "--state", "service", *more))
    assert [path.name for path in Path("service").iterdir()] == ["daemon.lock"]


def test_a_page_beside_the_service_that_finds_its_port_taken_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with beside(tmp_path / "new", load(None, {"web": {"port": port}})):
            pass
    told = capsys.readouterr().err
    assert told.startswith("Error: No review page") and str(port) in told and len(told.splitlines()) == 1


def test_a_status_is_told_in_words() -> None:
    facts = {"drawdown": 0.0007325, "principal_loss": -0.2276, "prompts_waiting": [], "reviews_waiting": ["p-1", "p-2"]}
    text = in_words(facts)
    assert "0.1%" in text and "22.8% above" in text and "p-1, p-2" in text and "none" in text and "[" not in text
    assert "above" not in in_words(facts | {"principal_loss": 0.1}) and "10.0%" in in_words(
        facts | {"principal_loss": 0.1}
    )


@pytest.mark.parametrize("cash", ["abc", "-5", "NaN", "Infinity", "0.001"])
def test_opening_cash_is_dollars_and_cents(cash: str, said: Said) -> None:
    assert cash in line(said("exchange", "serve", "--tape", "builtin", "--cash", cash))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("model = 3", "Setting model"),
        ("accounts = 3", "Setting accounts"),
        ('[model]\nbase_url = "nonsense"', "Setting model.base_url"),
        ('[model.roles.coder]\nbase_url = "ftp://h"', "Setting model.roles.coder.base_url"),
        ('[broker]\ndata_url = "//h"', "Setting broker.data_url"),
    ],
)
def test_a_setting_that_cannot_be_is_named(text: str, hint: str, said: Said) -> None:
    Path("own.toml").write_text(text, "utf-8")
    assert hint in line(said("simulate", "--settings", "own.toml", "--state", "new"))


def test_a_secret_at_a_wrong_place_of_the_settings_is_not_repeated(said: Said) -> None:
    Path("own.toml").write_text('[broker]\nsecret = "hunter2"\n', "utf-8")
    told = line(said("doctor", "--settings", "own.toml"))
    assert "Setting broker.secret" in told and "hunter2" not in told


def test_the_environment_must_hold_json_where_it_holds_a_section(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMRL_ACCOUNT", "no json")
    assert '"account"' in line(said("doctor"))
    monkeypatch.setenv("OOMRL_ACCOUNT", '{"endowment": "7"}')
    assert load(None).account.endowment == 7


def test_a_clock_that_would_never_move_is_refused(said: Said) -> None:
    assert "above 0" in line(said("exchange", "serve", "--tape", "builtin", "--port", "0", "--speed", "0"))


def test_a_variable_of_no_section_is_refused(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMRL_ACOUNT__ENDOWMENT", "5000")
    told = line(said("report", "--state", "service"))
    assert "OOMRL_ACOUNT__ENDOWMENT" in told and "5000" not in told


def test_a_model_where_nobody_answers_is_given_up_after_few_episodes(said: Said) -> None:
    with socket.socket() as taken:  # bound, and listening to nobody
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        told = line(said("qualify", "--model", "m", "--base-url", f"http://127.0.0.1:{port}/v1", "--state", "service"))
    assert "did not in any of 5 episodes: APIConnectionError" in told
