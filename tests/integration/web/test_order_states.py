"""Every change of every order's state, as a page and as files."""

from __future__ import annotations

from datetime import timedelta

from oomrl.domain.records import OrderEvent, OrderState
from tests.integration.database import builders as build
from tests.integration.web.conftest import Page
from tests.states import AT, RUN


def test_changes_of_orders_are_shown_and_saved(page: Page) -> None:
    batch = build.orders(400)
    with page.made.store.begin() as work:
        work.orders.save(RUN, batch, build.day(401))
        for number, (kind, state) in enumerate((("sent", OrderState.WORKING), ("<b>done</b>", OrderState.FILLED)), 1):
            event = OrderEvent(batch.ids[0], number, AT + timedelta(minutes=number), kind, {"filled": "1.5"})
            work.orders.move(RUN, event, state)
    browser = page.as_("vic")
    text = browser.get("/account/order_states").text
    assert f"/orders/{batch.ids[0]}" in text and "&lt;b&gt;done" in text and "<b>done" not in text
    saved = browser.get("/export/order_states.json").json()
    assert [(row["client_order_id"], row["sequence"], row["kind"]) for row in saved] == [
        (batch.ids[0], 1, "sent"),
        (batch.ids[0], 2, "<b>done</b>"),
    ]
    assert browser.get("/export/order_states.csv").text.count("\n") == 3
    assert "/account/order_states" in browser.get("/account/orders").text
