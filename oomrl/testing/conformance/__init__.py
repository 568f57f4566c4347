"""What a broker's adapter must keep to, as a suite that any adapter can run against itself.

    from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage

    class TestMyBroker(BrokerageConformance):
        @pytest.fixture
        def stage(self) -> Stage: ...

Each test names the number of its rule. A brokerage that passes them all can be put under the order path.
"""
