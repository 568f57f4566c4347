from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from oomrl.web.diff import file_diff, words
from oomrl.web.text import inert, odd

OLD = b"""import math


def size(weight, cap):
    # how much
    a = weight * 2
    b = a
    c = b
    d = c
    e = d
    f = e
    return min(weight, cap)


def other():
    return 1
"""


def test_a_change_shows_its_whole_function_and_hides_the_rest() -> None:
    found = file_diff("a.py", OLD, OLD.replace(b"min(weight, cap)", b"max(weight, cap)"))
    assert (found.added, found.removed, found.action) == (1, 1, "changed")
    shown = [row.old_number for row in found.rows if row.kind != "gap"]
    assert shown[0] <= 4 and 12 in shown
    changed = next(row for row in found.rows if row.kind == "changed")
    assert "<del>" in changed.old and "<ins>" in changed.new and 'class="' in changed.new
    assert ">min<" in changed.old and ">max<" in changed.new
    whole = file_diff("a.py", OLD, OLD.replace(b"min", b"max"), whole=True)
    assert [row.kind for row in whole.rows].count("gap") == 0 and len(whole.rows) == OLD.count(b"\n")


def test_white_space_may_be_ignored() -> None:
    new = OLD.replace(b"    return 1", b"        return  1")
    assert file_diff("a.py", OLD, new).added == 1
    ignored = file_diff("a.py", OLD, new, ignore_space=True)
    assert ignored.added == 0 and any("1 lines whose white space changed" in flag for flag in ignored.flags)
    assert file_diff("a.py", OLD, OLD + b"x = 1\n", ignore_space=True).flags == ()


def test_new_and_deleted_files_say_so() -> None:
    assert (file_diff("a.py", None, OLD).action, file_diff("a.py", OLD, None).action) == ("created", "deleted")


def test_invisible_characters_are_flagged_and_marked() -> None:
    found = file_diff("a.py", OLD, OLD + "x = '\u202e'\n".encode())
    assert any("U+202E" in flag for flag in found.flags)
    row = next(row for row in found.rows if row.kind == "new")
    assert "\u202e" not in row.new and 'class="odd"' in row.new


def test_words_mark_what_differs_and_no_more() -> None:
    old, new = "caps = np.full(shape, cap)", "caps = np.minimum(shape, cap)"
    gone, come = words(old, new)
    assert "".join(old[n] for n in sorted(gone)) == "full" and "".join(new[n] for n in sorted(come)) == "minimum"
    assert words("abc def", "xyz 123 456 789") == (set(), set())


LINES = st.lists(st.text(alphabet="ab <&\"'(=\t", max_size=12), max_size=8)


@given(LINES, LINES)
@settings(max_examples=60, deadline=None)
def test_both_sides_of_a_diff_are_the_files_themselves(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines).encode() for lines in (old, new))
    found = file_diff("a.txt", before, after, whole=True)
    left = [row for row in found.rows if row.old_number]
    right = [row for row in found.rows if row.new_number]
    assert [row.old_number for row in left] == list(range(1, len(old) + 1))
    assert [row.new_number for row in right] == list(range(1, len(new) + 1))
    for row in left:
        assert Markup(re.sub(r"<[^>]*>", "", str(row.old))).unescape() == old[row.old_number - 1]
    for row in right:
        assert Markup(re.sub(r"<[^>]*>", "", str(row.new))).unescape() == new[row.new_number - 1]
    assert all(str(row.old) == str(row.new) for row in found.rows if row.kind == "same" and "<" not in str(row.old))


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_inert_text_holds_no_tag_and_nothing_unseen(text: str) -> None:
    shown = str(inert(text))
    without = re.sub(r'<span class="odd" title="[^"<>]*">U\+[0-9A-F]+</span>', "", shown)
    assert "<" not in without and ">" not in without
    assert not any(odd(character) for character in shown)


def test_a_long_text_is_cut_and_says_so() -> None:
    assert "cut after 10" in inert("x" * 11, 10) and "cut" not in inert("x" * 10, 10)


def test_a_change_behind_any_number_of_unchanged_lines_is_shown() -> None:
    for lines in (7_000, 60_000):
        before = b"x = 1\n" * lines
        found = file_diff("a.py", before, before + b"y = 2\n")
        assert [row.kind for row in found.rows] == ["gap", "same", "same", "same", "same", "new"]
        assert found.rows[0].hidden == lines - 4 and not found.cut


def test_rows_that_are_left_out_are_said() -> None:
    before = b"x = 1\n" * 2_000
    for found in (
        file_diff("a.py", before, b"y = 1\n" * 2_000),
        file_diff("a.py", before, before + b"y\n", whole=True),
    ):
        assert found.cut and len(found.rows) == 1_500 and any("first 1,500 rows" in flag for flag in found.flags)


def test_cut_lines_of_a_large_file_are_said_and_marked() -> None:
    rest = b"x = 1\n" * 40_000
    before, after = b"a = '" + b"s" * 3_000 + b"'\n", b"a = '" + b"s" * 3_000 + b"' + evil()\n"
    found = file_diff("a.py", before + rest, after + rest)
    assert any(flag.startswith("2 lines are cut after 2,000") for flag in found.flags)
    row = next(row for row in found.rows if row.kind == "changed")
    assert "1,015 more" in row.new and 'class="cut"' in row.new
    small = file_diff("a.unknown", before, after)
    assert "evil()" in next(row for row in small.rows if row.kind == "changed").new


def test_names_outside_ascii_are_flagged_in_code_and_nowhere_else() -> None:
    found = file_diff("a.py", OLD, OLD + "c\u0430p = 1  # na\u00efve\n".encode())
    assert found.flags == ("1 names outside ASCII, which may look like others: c\u0430p (U+0430)",)
    broken = file_diff("a.py", OLD, "def (:\n  c\u0430p = (".encode())
    assert any("U+0430" in flag for flag in broken.flags)
    assert file_diff("a.py", OLD, OLD + "x = 'na\u00efve'\n".encode()).flags == ()
    assert file_diff("a.md", OLD, "na\u00efve\n".encode()).flags == ()


def test_blanks_and_selectors_that_python_calls_printable_are_marked() -> None:
    for point in (0xE0100, 0xE01EF, 0x180B, 0x180F, 0x2800, 0x1D159, 0xFE0F):
        assert odd(chr(point)) and f"U+{point:04X}" in inert(f"a{chr(point)}b")
