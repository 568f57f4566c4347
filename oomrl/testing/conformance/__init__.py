"""What a broker's adapter must keep to, as a suite that any adapter can run against itself.

    from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage

    class TestMyBroker(BrokerageConformance):
        @pytest.fixture
        def stage(self) -> Stage: ...

Each test names the number of its rule. A brokerage that passes them all can be put under the order path.
`oomrl.testing.conformance.broker` says the same of whole sessions. docs/brokers.md shows how an adapter runs both.
"""
