"""The conversation buffer: its messages, its token count, and its context."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem import ConversationBuffer
from jidomem.errors import InvalidRequest
from jidomem.working.tiers import Message, estimate

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def buffer_of(*contents, max_tokens=100_000, **options):
    buffer = ConversationBuffer.new(max_tokens, **options)
    for content in contents:
        buffer = buffer.add("user", content, now=lambda: NOW)
    return buffer


def contents(buffer):
    return [message.content for message in buffer.messages]


def test_a_new_buffer_is_empty():
    # E021
    buffer = ConversationBuffer.new()

    assert (buffer.max_tokens, buffer.current_tokens, buffer.messages) == (100_000, 0, ())
    assert (buffer.evicted, buffer.get_context()) == ((), [])
    assert ConversationBuffer.new(max_tokens=7).max_tokens == 7


def test_a_message_has_its_role_and_its_time_in_utc():
    # E022 E033
    before, empty = datetime.now(UTC), ConversationBuffer.new()

    timed = empty.add("user", "hello", now=lambda: NOW)
    both = ConversationBuffer.add(timed, "assistant", "good morning")

    assert timed.messages == (Message("user", "hello", NOW, 2),)
    assert [(m.role, m.content, m.tokens) for m in both.messages] == [
        ("user", "hello", 2),
        ("assistant", "good morning", 4),
    ]
    assert timedelta(0) <= both.messages[1].timestamp - before < timedelta(minutes=1)
    assert both.messages[1].timestamp.tzinfo is UTC
    assert (empty.messages, empty.current_tokens, len(timed.messages)) == ((), 0, 1)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [("", 1), ("abc", 1), ("abcd", 2), ("abcdefg", 2), ("abcdefgh", 3), ("äöüß", 2), ("x" * 4000, 1001)],
)
def test_the_tokens_of_a_message_are_a_quarter_of_its_characters_plus_one(content, tokens):
    # E023 E024
    buffer = buffer_of(content)
    assert (estimate(content), buffer.current_tokens) == (tokens, tokens)
    assert buffer.add("user", "abcd").current_tokens == tokens + 2


def test_the_oldest_messages_are_evicted_until_the_rest_fits_the_budget():
    # E025 E032
    buffer = buffer_of("aaaa", "bbbb", "cccc", max_tokens=6)
    assert (contents(buffer), buffer.current_tokens, buffer.evicted) == (["aaaa", "bbbb", "cccc"], 6, ())

    one = buffer.add("user", "d", now=lambda: NOW)
    two = one.add("user", "eeee" * 3, now=lambda: NOW)

    assert (contents(one), one.current_tokens) == (["bbbb", "cccc", "d"], 5)
    assert one.evicted == (Message("user", "aaaa", NOW, 2),)
    assert (contents(two), two.current_tokens) == (["d", "eeeeeeeeeeee"], 5)
    assert [message.content for message in two.evicted] == ["bbbb", "cccc"]
    assert two.add("user", "").evicted == ()


def test_a_message_longer_than_the_budget_is_kept_alone_and_evicted_by_the_next():
    # E027
    long = buffer_of("a", "b", "c" * 100, max_tokens=10)

    assert (contents(long), long.current_tokens) == (["c" * 100], 26)
    assert [message.content for message in long.evicted] == ["a", "b"]
    after = long.add("user", "d")
    assert (contents(after), after.current_tokens, contents(after.add("user", "e"))) == (["d"], 1, ["d", "e"])


MESSAGES = st.lists(st.integers(0, 30).map(lambda size: "x" * size), max_size=25)


@given(MESSAGES, st.integers(1, 20))
def test_the_buffer_contains_the_longest_suffix_within_the_budget(messages, budget):
    # E025 E026 E027
    buffer, evicted, numbers = ConversationBuffer.new(budget), [], count()
    for content in messages:
        buffer = buffer.add(f"role-{next(numbers)}", content)
        evicted += buffer.evicted
        assert buffer.current_tokens == sum(estimate(m.content) for m in buffer.messages)
        assert buffer.current_tokens <= budget or len(buffer.messages) == 1
        if buffer.evicted:  # no more messages than necessary are evicted
            assert buffer.current_tokens + buffer.evicted[-1].tokens > budget
        assert buffer.messages[-1].content == content
    roles = [message.role for message in (*evicted, *buffer.messages)]
    assert roles == [f"role-{n}" for n in range(len(messages))]


@given(MESSAGES, st.integers(1, 20))
def test_adding_a_message_changes_no_existing_buffer(messages, budget):
    # E033
    buffer = ConversationBuffer.new(budget)
    for content in messages:
        before = (buffer.messages, buffer.current_tokens, buffer.evicted, buffer.get_context())
        after = buffer.add("user", content)
        assert (buffer.messages, buffer.current_tokens, buffer.evicted, buffer.get_context()) == before
        buffer = after


def test_the_context_has_role_and_content_of_messages_oldest_first():
    # E028
    buffer = buffer_of("one").add("assistant", "two").add("tool", "three")
    assert buffer.get_context() == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "tool", "content": "three"},
    ]


@pytest.mark.parametrize(
    ("window", "expected"), [(0, []), (1, ["c"]), (2, ["b", "c"]), (3, ["a", "b", "c"]), (9, ["a", "b", "c"])]
)
def test_a_window_returns_the_last_messages(window, expected):
    # E029 E030
    buffer = buffer_of("a", "b", "c")
    assert [each["content"] for each in buffer.get_context(window=window)] == expected
    assert ConversationBuffer.new().get_context(window) == []


@pytest.mark.parametrize("window", [-1, -100, 1.0, "2", True])
def test_an_invalid_window_is_refused(window):
    # E030
    with pytest.raises(InvalidRequest, match=r"^window=") as refusal:
        buffer_of("a").get_context(window)
    assert refusal.value.hint == "leave window out for all"


def test_a_custom_estimator_is_used():
    # E031
    words = buffer_of("one two three", "four", max_tokens=4, estimator=lambda text: len(text.split()))
    assert (words.current_tokens, [message.tokens for message in words.messages]) == (4, [3, 1])

    extended = words.add("user", "five")
    assert (contents(extended), extended.current_tokens) == (["four", "five"], 2)
    assert buffer_of("", "", max_tokens=1, estimator=len).current_tokens == 0


@pytest.mark.parametrize("tokens", [-1, 1.5, None, True])
def test_an_invalid_estimate_is_refused(tokens):
    # E031
    with pytest.raises(InvalidRequest, match=r"the estimator returned .* tokens"):
        buffer_of("a", estimator=lambda text: tokens)


@pytest.mark.parametrize("max_tokens", [0, -1, 1.5, "9", True, None])
def test_an_invalid_budget_is_refused(max_tokens):
    with pytest.raises(InvalidRequest, match=r"^max_tokens="):
        ConversationBuffer.new(max_tokens)


@pytest.mark.parametrize(("role", "content"), [("", "a"), (" ", "a"), (None, "a"), ("user", None), ("user", b"a")])
def test_an_invalid_message_is_refused(role, content):
    with pytest.raises(InvalidRequest) as refusal:
        ConversationBuffer.new().add(role, content)
    assert refusal.value.detail == f"a message has a role and a content: {role!r} and {content!r} are not both texts"
    assert refusal.value.hint == 'add("user", "the text of the message")'
