"""A paper exchange that speaks Alpaca's trading, market-data and stream protocols on loopback.

Start it with `oomrl exchange serve --tape T`, or in a program:

    from oomrl.exchange.emulator.server import Settings, running

    with running(tape, Settings(start=date(2007, 1, 3))) as exchange:
        TradingClient("key", "secret", url_override=exchange.url)
        StockHistoricalDataClient("key", "secret", url_override=exchange.url)
        TradingStream("key", "secret", url_override=exchange.stream_url)
        httpx.post(exchange.url + "/admin/clock", json={"until": "close"})

Any pair of non-empty keys is accepted. The admin endpoints, on loopback only, without keys and without rate limit:

    GET  /admin/clock      {"now", "next": {"at", "what"}, "is_open"}; "what" is morning, open, first, second, close
                           (the four points of the session's path) or lock_opg, lock_cls (the auctions' cut-off)
    POST /admin/clock      {"to": "2007-01-03T21:00:00Z"} | {"by": seconds} | {"until": "open"|"point"|"close"|
                           "morning"|"next"}; moves the virtual clock forward through every event on the way
    GET  /admin/books      the exchange's own books: cash, positions, orders, fills, actions, all amounts as strings
    GET  /admin/requests   how many requests were answered, by endpoint and by status
    POST /admin/deposit    {"amount": "1000.00"}; negative amounts withdraw
    POST /admin/reset      {"cash": "1000000"}: an empty account under a new id
    POST /admin/faults     {"toml": "..."}: put other faults in force (docs/faults.md); GET: how often each has struck
"""
