"""One worker runs all tests of a group, so that what they share is made once; groups start before other tests."""

import pytest


@pytest.mark.xdist_group("groups")
def test_who_spreads_the_tests_knows_the_groups(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("no group is one worker's unless by --dist loadgroup")
    assert request.node.nodeid.endswith("@groups")
