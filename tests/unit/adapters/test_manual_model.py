from __future__ import annotations

from pathlib import Path

import pytest

from oomrl.adapters.manual_model import ManualModel
from oomrl.errors import Mistake
from oomrl.ports import Context, Reply

CONTEXT = Context({}, "", {}, {}, ())
PROMPT = "Mend it: \u2014\r\n```\n"


@pytest.fixture
def model(tmp_path: Path) -> ManualModel:
    return ManualModel(tmp_path)


def write(folder: Path, text: str) -> Path:
    file = folder / "answer.md"
    file.write_bytes(text.encode())
    return file


def test_a_prompt_waits_on_disk_until_it_is_answered(tmp_path: Path, model: ManualModel) -> None:
    assert model.waiting() == []
    assert model.answer("coder-1-abc", "coder", PROMPT, CONTEXT) is None
    assert (tmp_path / "prompts" / "coder-1-abc.md").read_bytes() == PROMPT.encode()
    assert model.waiting() == ["coder-1-abc"]
    assert model.reply("coder-1-abc", write(tmp_path, "a diff\r\n"))
    assert model.waiting() == []
    reply = model.answer("coder-1-abc", "coder", PROMPT, CONTEXT)
    assert reply == Reply("a diff\r\n", "manual") and reply.cost == 0


def test_asking_and_answering_again_changes_nothing(tmp_path: Path, model: ManualModel) -> None:
    for _ in range(2):
        model.answer("a", "coder", PROMPT, CONTEXT)
    assert model.reply("a", write(tmp_path, "one"))
    assert not model.reply("a", write(tmp_path, "one"))
    with pytest.raises(Mistake, match="answered already"):
        model.reply("a", write(tmp_path, "two"))
    assert ManualModel(tmp_path).answer("a", "coder", PROMPT, CONTEXT) == Reply("one", "manual")
    assert sorted(path.name for path in (tmp_path / "replies").iterdir()) == ["a.md"]


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b", "a" * 81, "a.md"])
def test_an_id_is_no_path(tmp_path: Path, model: ManualModel, name: str) -> None:
    with pytest.raises(Mistake, match="id of a prompt"):
        model.answer(name, "coder", PROMPT, CONTEXT)
    with pytest.raises(Mistake, match="id of a prompt"):
        model.reply(name, write(tmp_path, "x"))


def test_a_reply_that_is_none_is_a_mistake(tmp_path: Path, model: ManualModel) -> None:
    model.answer("a", "coder", PROMPT, CONTEXT)
    with pytest.raises(Mistake, match="Could not read"):
        model.reply("a", tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistake, match="UTF-8"):
        model.reply("a", tmp_path / "binary")
    with pytest.raises(Mistake, match="at most"):
        model.reply("a", write(tmp_path, "x" * 1_000_001))
    with pytest.raises(Mistake, match="oomrl prompts"):
        model.reply("b", write(tmp_path, "x"))
    assert model.waiting() == ["a"]
