"""Accept: the most specific range counts, and a name is more than a wildcard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.web.accept import named_quality, quality

STREAM, JSON = "text/event-stream", "application/json"


@pytest.mark.parametrize(
    ("accept", "stream", "json", "named"),
    [
        pytest.param([], 1, 1, 0, id="no-field"),
        pytest.param([""], 0, 0, 0, id="empty"),
        pytest.param(["text/event-stream"], 1, 0, 1, id="stream"),
        pytest.param(["Text/Event-Stream ; Q=0.5 , application/json"], 0.5, 1, 0.5, id="case-and-spaces"),
        pytest.param(["application/json;q=0.4", "text/event-stream"], 1, 0.4, 1, id="two-lines"),
        pytest.param(["*/*"], 1, 1, 0, id="anything"),
        pytest.param(["text/*;q=0.3, */*;q=0.1"], 0.3, 0.1, 0, id="wildcards"),
        pytest.param(["text/event-stream;q=0, */*"], 0, 1, 0, id="refused"),
        pytest.param(["text/event-stream;charset=utf-8;q=0.25"], 0.25, 0, 0.25, id="parameter"),
        pytest.param(["text/event-stream;q=0.1, text/event-stream;q=0.9"], 0.9, 0, 0.9, id="twice"),
        pytest.param(["text/event-stream;q=2, application/json;q=1.000"], 0, 1, 0, id="no-quality"),
        pytest.param(["text/event-stream;q="], 0, 0, 0, id="empty-quality"),
        pytest.param([",;,;;q=1,application/json;q=0."], 0, 0, 0, id="hardly-anything"),
    ],
)
def test_how_gladly_a_type_is_accepted(accept: list[str], stream: float, json: float, named: float) -> None:
    """Each for a stream and for JSON; the last for a stream that is asked for by its name."""
    assert (quality(accept, STREAM), quality(accept, JSON), named_quality(accept, STREAM)) == (stream, json, named)


@given(st.lists(st.text(alphabet=';,=/* qtexvnamplicoj.-0159"\t\xff', max_size=60), max_size=3))
def test_whatever_is_sent_is_read(accept: list[str]) -> None:
    """A quality is from 0 to 1, and by name it is 0 or the same."""
    assert 0 <= named_quality(accept, STREAM) <= 1
    assert 0 <= quality(accept, STREAM) <= 1
    assert named_quality(accept, STREAM) in (0, quality(accept, STREAM))
