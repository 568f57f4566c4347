"""Halt on the page is the kill switch of the command, and the page says when the switch alone stops orders."""

from __future__ import annotations

import pytest

from oomrl.adapters.kill_switch import KillSwitch, demand
from oomrl.domain.people import Right
from oomrl.errors import Halt
from tests.integration.web.conftest import Page


def test_halt_and_resume_move_the_switch_on_the_page_and_in_the_api(page: Page) -> None:
    switch, olga = KillSwitch(page.made.state), page.as_("olga")
    assert "open at a broker is cancelled" in olga.get("/account").text
    assert olga.act("/halt", reason="odd <fills>").status_code == 303
    with pytest.raises(Halt, match="by olga: odd <fills>"):
        demand(page.made.state)
    assert "halted by a person" in olga.get("/account").text
    assert olga.act("/resume", reason="looked at").status_code == 303
    demand(page.made.state)
    token, http = page.token("olga", Right.SEE, Right.OPERATE), page.browser().http
    assert http.post("/api/v1/halt", json={"reason": "again"}, headers=token).status_code == 200
    assert http.get("/api/v1/status", headers=token).json()["stopped"] == "by olga: again"
    assert http.post("/api/v1/resume", json={"reason": "fine"}, headers=token).status_code == 200
    assert http.get("/api/v1/status", headers=token).json()["stopped"] == switch.words() == ""


def test_a_switch_without_a_record_is_shown_with_its_reason_and_can_be_released(page: Page) -> None:
    switch, olga = KillSwitch(page.made.state), page.as_("olga")
    switch.engage("ben", "<b>no database</b>", page.clock())
    text = olga.get("/account").text
    assert "halted by file" in text and "by ben: &lt;b&gt;no database" in text and 'action="/resume"' in text
    olga.act("/resume", reason="it is back")
    assert "halted by file" not in olga.get("/account").text and not switch.place.exists()
    switch.place.write_bytes(b"\xff{")
    assert "cannot be read" in olga.get("/").text


def test_who_may_not_operate_moves_no_switch(page: Page) -> None:
    assert page.as_("ann").act("/halt", reason="mine").status_code == 403
    assert page.as_("olga").act("/halt", reason=" ").status_code == 422
    assert not KillSwitch(page.made.state).place.exists()
