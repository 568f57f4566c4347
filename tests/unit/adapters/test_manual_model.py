from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from oomrl.adapters.manual_model import ManualModel, text_of
from oomrl.domain.roll import Roll
from oomrl.errors import Mistake
from oomrl.ports import Context, Reply

CONTEXT = Context({}, "", {}, {}, ())
PROMPT = "Mend it: \u2014\r\n```\n"


@pytest.fixture
def model(tmp_path: Path) -> ManualModel:
    return ManualModel(tmp_path)


def test_a_prompt_waits_on_disk_until_it_is_answered(tmp_path: Path, model: ManualModel) -> None:
    assert model.waiting() == []
    assert model.answer("coder-1-abc", "coder", PROMPT, CONTEXT) is None
    assert (tmp_path / "prompts" / "coder-1-abc.md").read_bytes() == PROMPT.encode()
    assert model.waiting() == ["coder-1-abc"]
    assert model.take("coder-1-abc", "a diff\r\n")
    assert model.waiting() == []
    reply = model.answer("coder-1-abc", "coder", PROMPT, CONTEXT)
    assert reply == Reply("a diff\r\n", "manual") and reply.cost == 0


def test_asking_and_answering_again_changes_nothing(tmp_path: Path, model: ManualModel) -> None:
    for _ in range(2):
        model.answer("a", "coder", PROMPT, CONTEXT)
    assert model.take("a", "one")
    assert not model.take("a", "one")
    with pytest.raises(Mistake, match="answered already"):
        model.take("a", "two")
    assert ManualModel(tmp_path).answer("a", "coder", PROMPT, CONTEXT) == Reply("one", "manual")
    assert sorted(path.name for path in (tmp_path / "replies").iterdir()) == ["a.md"]


def test_of_two_answers_at_once_one_stands_with_its_own_author(model: ManualModel) -> None:
    for name in map(str, range(40)):
        model.answer(name, "coder", PROMPT, CONTEXT)
        together = Barrier(2)

        def answered(by: str, name: str = name, together: Barrier = together) -> bool:
            together.wait()
            try:
                return model.take(name, f"what {by} wants", by)
            except Mistake:
                return False

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(answered, ("ann", "ben"))) == [False, True]
        reply = model.answer(name, "coder", PROMPT, CONTEXT)
        assert reply is not None and reply in [Reply(f"what {by} wants", f"manual <{by}>") for by in ("ann", "ben")]


@pytest.mark.parametrize(
    "name", ["Ann <ann@desk.example>", "Smith, Ann", "Ann (desk)", "Ann/desk", "Zoë  Ann", "A" * 80, "a<b<c", "<ann>"]
)
def test_whoever_answers_is_known_again_when_they_approve(model: ManualModel, name: str) -> None:
    model.answer("a", "coder", PROMPT, CONTEXT)
    assert model.take("a", "a diff", name)
    reply = model.answer("a", "coder", PROMPT, CONTEXT)
    assert reply is not None and Roll().one_party(name, f"{reply.model}, manual <ben>")
    assert len(reply.model) <= len("manual <>") + 80 and reply.model.count("<") == reply.model.count(">") == 1
    assert not Roll().one_party("cy", reply.model)


@pytest.mark.parametrize("name", ["A" * 81, "<>", " , ", "ann\u200b", "a\0b"])
def test_nobody_answers_under_what_is_no_name(model: ManualModel, name: str) -> None:
    model.answer("a", "coder", PROMPT, CONTEXT)
    with pytest.raises(Mistake, match="name or address"):
        model.take("a", "a diff", name)
    assert model.waiting() == ["a"]


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b", "a" * 81, "a.md"])
def test_an_id_is_no_path(tmp_path: Path, model: ManualModel, name: str) -> None:
    with pytest.raises(Mistake, match="id of a prompt"):
        model.answer(name, "coder", PROMPT, CONTEXT)
    with pytest.raises(Mistake, match="id of a prompt"):
        model.take(name, "x")


def test_a_reply_that_is_none_is_a_mistake(tmp_path: Path, model: ManualModel) -> None:
    model.answer("a", "coder", PROMPT, CONTEXT)
    with pytest.raises(Mistake, match="Could not read"):
        text_of(tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistake, match="UTF-8"):
        text_of(tmp_path / "binary")
    with pytest.raises(Mistake, match="surrogate"):
        model.take("a", "x\ud800")
    with pytest.raises(Mistake, match="at most"):
        model.take("a", "x" * 1_000_001)
    with pytest.raises(Mistake, match="oomrl prompts"):
        model.take("b", "x")
    assert model.waiting() == ["a"]
