from __future__ import annotations

import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.adapters.repository import Repository, read_folder
from oomrl.errors import Halt, Mistake, Refused

AT = datetime(2020, 1, 2, 21, 0, tzinfo=UTC)
TREE = {
    "src/strategy/a.py": b"x = 1\n",
    "src/strategy/b.py": b"no newline",
    "strategy.toml": b'cadence = "daily"\r\n',
    "tests/test_a.py": b"",
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "state" / "strategy", TREE, "Start", AT)


def test_the_first_revision_is_the_tree_that_was_given(repository: Repository) -> None:
    assert repository.tree(repository.head()) == TREE
    (first,) = repository.log()
    assert (first.id, first.parent, first.at, first.message) == (repository.head(), "", AT, "Start")


def test_a_commit_changes_what_it_names_and_nothing_else(repository: Repository) -> None:
    base = repository.head()
    changes = {"src/strategy/a.py": b"x = 2\n", "tests/test_a.py": None, "src/strategy/deep/c.py": b"\xff\x00"}
    new = repository.commit(base, changes, "Mend\n\nit", AT)
    assert repository.head() == new
    expected = {**TREE, **changes}
    assert repository.tree(new) == {path: data for path, data in expected.items() if data is not None}
    assert repository.tree(base) == TREE
    assert repository.preview(base, changes) == repository.tree_id(new)
    assert "-x = 1\n+x = 2\n" in repository.diff(base, new)


def test_the_same_history_has_the_same_ids(tmp_path: Path, repository: Repository) -> None:
    other = Repository.create(tmp_path / "other", dict(reversed(TREE.items())), "Start", AT)
    assert other.head() == repository.head()
    ids = {one.commit(one.head(), {"strategy.toml": b"x"}, "Mend", AT) for one in (repository, other)}
    assert len(ids) == 1
    later = Repository.create(tmp_path / "later", TREE, "Start", AT + timedelta(seconds=1))
    assert later.head() != Repository.create(tmp_path / "again", TREE, "Start", AT).head()
    assert later.tree_id(later.head()) == other.log()[-1].tree


def test_doing_it_twice_is_doing_it_once(tmp_path: Path, repository: Repository) -> None:
    base = repository.head()
    new = repository.commit(base, {"strategy.toml": b"x"}, "Mend", AT)
    assert repository.commit(base, {"strategy.toml": b"x"}, "Mend", AT) == new
    back = repository.rollback(base, new, "Back", AT)
    assert repository.rollback(base, new, "Back", AT) == back
    assert len(repository.log()) == 3
    assert Repository.create(repository.folder, TREE, "Start", AT).head() == back


def test_only_a_change_of_what_is_deployed_is_deployed(repository: Repository) -> None:
    base = repository.head()
    repository.commit(base, {"strategy.toml": b"x"}, "Mend", AT)
    with pytest.raises(Refused, match="to be deployed"):
        repository.commit(base, {"strategy.toml": b"y"}, "Stale", AT)
    with pytest.raises(Refused, match="was none"):
        repository.commit(repository.head(), {"strategy.toml": b"x"}, "Nothing", AT)


def test_a_rollback_is_a_new_revision_with_the_old_tree(repository: Repository) -> None:
    base = repository.head()
    new = repository.commit(base, {"strategy.toml": b"x"}, "Mend", AT)
    back = repository.rollback(base[:10], new, "Tripwire", AT)
    assert repository.tree_id(back) == repository.tree_id(base)
    assert [one.id for one in repository.log()] == [back, new, base]
    assert repository.log()[0].parent == new


def test_a_checkout_is_read_only_and_one_for_one_content(repository: Repository) -> None:
    base = repository.head()
    place = repository.checkout(base)
    assert read_folder(place) == TREE
    worker = repository.checkout(base, ["src", "strategy.toml"])
    assert set(read_folder(worker)) == {"src/strategy/a.py", "src/strategy/b.py", "strategy.toml"}
    new = repository.commit(base, {"tests/test_a.py": b"more"}, "Tests", AT)
    assert repository.checkout(new, ["strategy.toml", "src"]) == worker
    assert repository.checkout(new) != place
    for parent, folders, files in os.walk(place):
        for name in [*folders, *files]:
            assert not (Path(parent) / name).stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)


def test_a_checkout_that_was_tampered_with_is_made_anew(repository: Repository) -> None:
    place = repository.checkout(repository.head())
    file = place / "src" / "strategy" / "a.py"
    for path in (file.parent, file):
        path.chmod(0o755)
    file.write_bytes(b"import os\n")
    (file.parent / "sitecustomize.py").write_bytes(b"")
    assert read_folder(repository.checkout(repository.head())) == TREE


@pytest.mark.parametrize(
    "path",
    ["../x", "/x", "a//b", "a/./b", "", ".git/config", "src/.GIT/x", "src/.gitattributes", "a\\b", "a\nb", "a\0b"],
)
def test_a_path_that_leaves_the_tree_is_refused(repository: Repository, path: str) -> None:
    with pytest.raises((Refused, ValueError)):
        repository.commit(repository.head(), {path: b"x"}, "Escape", AT)
    assert len(repository.log()) == 1


def test_hooks_filters_and_configuration_are_not_obeyed(tmp_path: Path, repository: Repository, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    proof = tmp_path / "ran"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {home}\n\tfsmonitor = "touch {proof}"\n[user]\n\tname = Someone\n'
        f'[filter "x"]\n\tclean = touch {proof}\n\tsmudge = touch {proof}\n[diff]\n\texternal = touch {proof}\n'
    )
    for name in ("post-commit", "reference-transaction", "update"):
        for folder in (home, repository.folder / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(f"#!/bin/sh\ntouch {proof}\n")
            (folder / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Someone")
    base = repository.head()
    new = repository.commit(base, {"strategy.toml": b"* filter=x diff=x\n"}, "Mend", AT)
    repository.diff(base, new)
    repository.checkout(new)
    assert not proof.exists()
    raw = subprocess.run(
        ["git", "--git-dir", str(repository.folder), "cat-file", "-p", new], capture_output=True, check=True, env={}
    )
    assert b"author oomrl <oomrl@localhost> 1577998800 +0000" in raw.stdout


def test_a_killed_creation_leaves_room_for_the_next(tmp_path: Path) -> None:
    (tmp_path / ".creating-abc").mkdir()
    assert (
        Repository.create(tmp_path / "strategy", TREE, "Start", AT).tree(Repository(tmp_path / "strategy").head())
        == TREE
    )


def test_another_strategy_in_the_same_place_is_a_mistake(repository: Repository) -> None:
    with pytest.raises(Mistake, match="another"):
        Repository.create(repository.folder, {"strategy.toml": b"other"}, "Start", AT)
    with pytest.raises(Mistake, match="oomrl init"):
        Repository(repository.folder / "nowhere")


@pytest.mark.parametrize("revision", ["", "HEAD", "xyz", "1234567", "deployed~1", "--help"])
def test_a_revision_is_named_by_its_digits_alone(repository: Repository, revision: str) -> None:
    with pytest.raises(Mistake, match="Expected"):
        repository.resolve(revision)


def test_damage_halts(repository: Repository) -> None:
    repository.commit(repository.head(), {"src/strategy/b.py": b"B = 2\n"}, "B", AT)
    objects = repository.folder / "objects"
    kept = [*objects.glob("pack/*.pack"), *objects.glob("pack/*.idx"), *objects.glob("??/*")]
    assert len(kept) > 4
    for path in kept:
        whole = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(b"garbage" + whole[7:])
        with pytest.raises(Halt, match="oomrl doctor"):
            again = Repository(repository.folder)
            for revision in again.log():
                again.tree(revision.id)
        path.write_bytes(whole)


def test_a_new_repository_is_one_pack(repository: Repository) -> None:
    names = [path.parent.name for path in (repository.folder / "objects").rglob("*") if path.is_file()]
    assert set(names) <= {"pack", "info"}


def test_reading_a_folder_leaves_litter_and_refuses_links(tmp_path: Path) -> None:
    for path, data in {**TREE, "src/__pycache__/a.pyc": b"x", ".git/HEAD": b"x", ".pytest_cache/x": b"x"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    assert read_folder(tmp_path) == TREE
    (tmp_path / "src" / "link.py").symlink_to("/etc/passwd")
    with pytest.raises(Mistake, match="plain files"):
        read_folder(tmp_path)
    with pytest.raises(Mistake, match="Expected a folder"):
        read_folder(tmp_path / "nowhere")


_NAMES = st.from_regex(r"\A[a-z]{1,3}(/[a-z]{1,3})?\.py\Z")


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(_NAMES, st.binary(max_size=50), min_size=1, max_size=5), st.data())
def test_any_tree_comes_back_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes], data: st.DataObject
) -> None:
    repository = Repository.create(tmp_path_factory.mktemp("any") / "strategy", tree, "Start", AT)
    assert repository.tree(repository.head()) == tree
    changes = data.draw(st.dictionaries(_NAMES, st.binary(max_size=50), max_size=3))
    expected = {**tree, **changes}
    if expected != tree:
        new = repository.commit(repository.head(), changes, "Change", AT)
        assert repository.tree(new) == expected
