"""Claude's memory tool over entries: the answers of the SDK's own tool, and the features beyond it."""

import asyncio
import doctest
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from urllib.parse import quote

import pytest
from http_endpoint import reply, served
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.entries import list_entries, recall
from jidomem.errors import InvalidRequest
from jidomem.journal.journal import Stream

AGENTS = map("agent-{}".format, count())


@pytest.fixture(scope="module", autouse=True)
def _sdk():
    """Import the SDK, which takes a second and a half, in the processes alone that run these tests."""
    global Anthropic, AsyncAnthropic, AsyncClaudeMemory, BetaLocalFilesystemMemoryTool, ClaudeMemory, ToolError
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.lib.tools import ToolError
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    from jidomem.adapters.claude_memory import AsyncClaudeMemory, ClaudeMemory


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("claude") / "root", project="p", agent="claude") as opened:
        yield opened


@pytest.fixture
def tool(memory):
    """The tool of a new agent."""
    return ClaudeMemory(memory, agent=next(AGENTS))


def answer_of(tool, command):
    """The answer of a tool, or the text of its error; errors of the file system are not distinguished."""
    try:
        return tool.call(command)
    except ToolError as refusal:
        return f"refused: {refusal}"
    except (OSError, ValueError):
        return "the file system does not let it"


def without_folder_sizes(answer):
    """An answer without the sizes of folders, which differ by file system."""
    if "levels deep" not in answer:
        return answer
    head, size_line, *lines = answer.split("\n")
    return [head, size_line.partition("\t")[2], *(re.sub(r"^[^\t]*(\t.*/)$", r"\1", line) for line in lines)]


class Reference:
    """The SDK's tool on files; folders that a refused command leaves behind are removed."""

    def __init__(self, folder):
        self.tool = BetaLocalFilesystemMemoryTool(str(folder))
        self.root = self.tool.memory_root

    def call(self, command):
        before = {*self.root.rglob("*")}
        answer = answer_of(self.tool, command)
        if answer.startswith(("refused", "the file system")):
            for leftover in sorted({*self.root.rglob("*")} - before, reverse=True):
                leftover.rmdir()
        return answer

    def texts(self):
        return {
            f"/memories/{path.relative_to(self.root)}": path.read_bytes().decode()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.mark.parametrize("name", ["ClaudeMemory", "AsyncClaudeMemory"])
def test_a_tool_accepts_an_open_memory_alone(name):
    with pytest.raises(InvalidRequest, match="ClaudeMemory takes an open memory, not 'memory'") as refusal:
        globals()[name]("memory")

    assert refusal.value.hint == "ClaudeMemory(jidomem.open('memory'))"


def test_the_examples_of_the_module_hold():
    assert doctest.testmod(sys.modules[ClaudeMemory.__module__]) == (0, 2)


@cache
def entries_of(memory, agent):
    return memory.entries.keyed(f"claude:{quote(agent, safe='')}:")


def texts(memory, agent, entries_of=entries_of):
    """The texts of the files of an agent by their paths, from its entries in *memory*."""
    entries = entries_of(memory, agent).read(lambda cached: [*cached.by_id.values()])
    return {
        each.metadata["path"]: each.metadata.get("text", each.content)
        for each in entries
        if not each.metadata["path"].endswith("/")
    }


NAMES = st.sampled_from(["a", "b.md", "ä ö", ".hidden"])
PATHS = st.one_of(
    st.lists(NAMES, max_size=3).map(lambda names: "/".join(["/memories", *names])),
    st.sampled_from(["/memories/", "/memories/a/", "/memories//a/./b.md", "/memories/a/../b.md", "/memoriesa"]),
    st.sampled_from(["/memories/../../etc/passwd", "/memories/a/../../x", "/etc", "", "memories/a", "/memories/.."]),
    st.sampled_from(["/memories/a\0b"]),
)
TEXTS = st.sampled_from(["", "\n", " ", "one", "one\n", "one\ntwo\nthree\n", "a\r\nb\r\n", "aa aa\naa", "é\u2028☃\n\n"])
PARTS = st.sampled_from(["", "one", "aa", "\n", "a", "two\nthree", "☃"])
PIECES = {
    "view": {"path": PATHS, "view_range": st.none() | st.lists(st.integers(-2, 5), min_size=1, max_size=2)},
    "create": {"path": PATHS, "file_text": TEXTS},
    "str_replace": {"path": PATHS, "old_str": PARTS, "new_str": PARTS},
    "insert": {"path": PATHS, "insert_line": st.integers(-1, 4), "insert_text": TEXTS},
    "delete": {"path": PATHS},
    "rename": {"old_path": PATHS, "new_path": PATHS},
}
COMMANDS = st.one_of(
    *(st.fixed_dictionaries({"command": st.just(name), **given}) for name, given in PIECES.items()),
    st.fixed_dictionaries({"command": st.just("create"), **PIECES["create"]}),
)


def create(path, text=""):
    return {"command": "create", "path": path, "file_text": text}


FILE = "/memories/b.md"
OF_A_FILE = [
    create(FILE, "aa aa\nb\naa"),
    *(
        {"command": "view", "path": FILE, "view_range": lines}
        for lines in ([1, 1], [2, -1], [0, 9], [3, 2], [9, 9], [2])
    ),
    *({"command": "str_replace", "path": FILE, "old_str": old, "new_str": "c"} for old in ("aa", "zz", "a\nb", "c\n")),
    *({"command": "insert", "path": FILE, "insert_line": line, "insert_text": "d\n"} for line in (-1, 9, 0, 3, 5)),
    {"command": "view", "path": FILE},
]


@settings(max_examples=25)
@given(commands=st.lists(COMMANDS, max_size=14))
@example([create("/memories/a/b/c.md"), {"command": "delete", "path": "/memories/a/b/c.md"}])
@example([create("/memories/a"), {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b/c"}])
@example([create("/memories/a/x"), {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b"}])
@example([create("/memories/a"), create("/memories/a/b"), create("/memories/a/b/c")])
@example(OF_A_FILE)
@example([create("/memories/a/b/c"), {"command": "rename", "old_path": "/memories/a/b", "new_path": "/memories/d"}])
def test_the_tool_gives_the_answers_and_the_files_of_the_reference(memory, tmp_path_factory, commands):
    folder = tmp_path_factory.mktemp("reference")
    reference, tested = Reference(folder), ClaudeMemory(memory, agent=next(AGENTS))
    for command in [*commands, {"command": "view", "path": "/memories"}]:
        expected, answer = reference.call(command), answer_of(tested, command)
        if expected == "the file system does not let it":
            assert answer.startswith("refused: "), command
        else:
            assert without_folder_sizes(answer) == without_folder_sizes(expected), command
        assert texts(memory, tested.agent) == reference.texts()
    reopened = ClaudeMemory(memory, agent=tested.agent)
    for path in [reference.root, *reference.root.rglob("*")]:
        view = {"command": "view", "path": f"/memories/{path.relative_to(reference.root)}".removesuffix("/.")}
        assert answer_of(reopened, view) == answer_of(tested, view)
    assert texts(memory, tested.agent, entries_of.__wrapped__) == reference.texts()
    shutil.rmtree(folder)


def test_every_version_is_stored_and_the_present_one_recalled(memory, tool):
    tool.call(create("/memories/customer.md", "Ana prefers tea"))
    moment = memory.journal.head(Stream("p", "history")).recorded_at
    tool.call({"command": "str_replace", "path": "/memories/customer.md", "old_str": "tea", "new_str": "coffee"})
    tool.call({"command": "rename", "old_path": "/memories/customer.md", "new_path": "/memories/people/ana.md"})

    (recalled,) = recall(memory.entries, agent_id=tool.agent, query="what does Ana drink?").entries
    assert recalled.content == "Ana prefers coffee"
    assert recalled.metadata["path"] == "/memories/people/ana.md"
    assert recalled.metadata["renamed_from"] == "/memories/customer.md"
    assert [hit.content for hit in memory.recall("coffee", agent=tool.agent, kinds=["entry"]).entries] == [
        recalled.content
    ]
    before = recall((memory.entries, {"as_of": moment}), agent_id=tool.agent, query="Ana").entries
    assert [one.content for one in before] == ["Ana prefers tea"]

    tool.call({"command": "delete", "path": "/memories/people"})

    assert recall(memory.entries, agent_id=tool.agent, query="Ana").entries == []
    rows = memory.reader.select("p", f"SELECT ?text ?by WHERE {{ ?e <https://jido.ai/ontology#agentId> '{tool.agent}' ;"
                                     " <https://jido.ai/ontology#entryText> ?text ."
                                     " ?by <https://jido.ai/ontology#replaces> ?e }")  # fmt: skip
    assert sorted(row["text"] for row in rows) == ["Ana prefers coffee", "Ana prefers coffee", "Ana prefers tea"]


def test_a_refusal_of_the_writer_is_a_tool_error_and_stores_nothing(memory, tool):
    with pytest.raises(ToolError, match=r"seems to contain a password.*say where it is stored"):
        tool.call(create("/memories/keys.md", "password = hunter2-correct-horse"))
    with pytest.raises(ToolError, match="262,145 bytes"):
        tool.call(create("/memories/long.md", "x" * (256 * 1024 + 1)))
    with pytest.raises(ToolError, match="surrogate"):
        tool.call(create("/memories/half.md", "\ud800"))

    assert texts(memory, tool.agent) == {}


def test_agents_do_not_see_each_others_files(memory, tool):
    tool.call(create("/memories/mine.md", "mine"))

    for other in (next(AGENTS), f"{tool.agent}:"):
        with pytest.raises(ToolError, match="does not exist"):
            ClaudeMemory(memory, agent=other).call({"command": "view", "path": "/memories/mine.md"})
        assert texts(memory, other) == {}


def test_a_cleared_memory_has_no_entries(memory, tool):
    tool.call(create("/memories/a/b.md", "one"))
    tool.call(create("/memories/c.md", "two"))

    assert tool.clear_all_memory() == "All memory cleared"
    assert texts(memory, tool.agent) == {}
    assert [one for one in list_entries(memory.entries) if one.agent_id == tool.agent] == []


def test_concurrent_inserts_lose_no_line(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as one, jidomem.open(tmp_path / "root", project="p") as other:
        tools = [ClaudeMemory(each, agent="shared") for each in (one, other)]
        tools[0].call(create("/memories/log.md"))
        lines = [f"line {number}" for number in range(12)]

        def add(number):
            command = {"command": "insert", "path": "/memories/log.md", "insert_line": 0, "insert_text": lines[number]}
            return tools[number % 2].call(command)

        with ThreadPoolExecutor(4) as pool:
            answers = [*pool.map(add, range(12))]

        assert set(answers) == {"The file /memories/log.md has been edited."}
        assert sorted(texts(one, "shared")["/memories/log.md"].splitlines()) == sorted(lines)


def message(*content, stop="tool_use"):
    """A message of the model, as the API returns it."""
    return reply({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [*content],
        "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    })  # fmt: skip


def tool_use(number, **command):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}


REPLIES = [
    message(tool_use(1, command="view", path="/memories")),
    message(tool_use(2, **create("/memories/tea.md", "Ana likes tea\n"))),
    message(tool_use(3, **create("/memories/tea.md", "again"))),
    message({"type": "text", "text": "Noted."}, stop="end_turn"),
]
REQUEST = {"model": "claude-sonnet", "max_tokens": 100, "messages": [{"role": "user", "content": "Ana likes tea"}]}


def results(bodies):
    """The result of each command of the model: the text, and whether it is an error."""
    results_sent = [body["messages"][-1]["content"][0] for body in bodies[1:]]
    return [(each["content"], each.get("is_error", False)) for each in results_sent]


def check_loop(bodies, final):
    assert [tool["type"] for tool in bodies[0]["tools"]] == ["memory_20250818"]
    (empty, _), created, refused = results(bodies)
    assert empty.endswith("\n4K\t/memories")
    assert created == ("File created successfully at: /memories/tea.md", False)
    assert refused == ("File /memories/tea.md already exists", True)
    assert final.content[0].text == "Noted."


def test_the_tool_runs_in_the_loop_of_the_sdk(memory, tool):
    with served(*REPLIES) as endpoint, Anthropic(base_url=endpoint.url, api_key="none", max_retries=0) as client:
        final = client.beta.messages.tool_runner(tools=[tool], **REQUEST).until_done()

    check_loop(endpoint.bodies, final)
    assert texts(memory, tool.agent) == {"/memories/tea.md": "Ana likes tea\n"}


def test_the_asynchronous_tool_runs_in_the_loop_of_the_asynchronous_sdk(memory):
    tool = AsyncClaudeMemory(memory, agent=(agent := next(AGENTS)))

    async def run(url):
        async with AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
            return await client.beta.messages.tool_runner(tools=[tool], **REQUEST).until_done()

    with served(*REPLIES) as endpoint:
        final = asyncio.run(run(endpoint.url))

    check_loop(endpoint.bodies, final)
    assert texts(memory, agent) == {"/memories/tea.md": "Ana likes tea\n"}


def test_each_command_of_the_asynchronous_tool_has_the_answer_of_the_synchronous_one(memory, tool):
    asynchronous = AsyncClaudeMemory(memory, agent=(agent := next(AGENTS)))
    path, other = "/memories/tea.md", "/memories/drinks/tea.md"
    commands = [
        create(path, "Ana likes tea\n"),
        {"command": "view", "path": path},
        {"command": "str_replace", "path": path, "old_str": "tea", "new_str": "mate"},
        {"command": "insert", "path": path, "insert_line": 1, "insert_text": "Ben does not"},
        {"command": "rename", "old_path": path, "new_path": other},
        {"command": "view", "path": other},
        {"command": "delete", "path": "/memories/drinks"},
        {"command": "delete", "path": "/memories/drinks"},
        create(path, "again"),
    ]

    async def run():
        answers = []
        for command in commands:
            try:
                answers.append(await asynchronous.call(command))
            except ToolError as refusal:
                answers.append(f"refused: {refusal}")
        return answers, await asynchronous.clear_all_memory()

    answers, cleared = asyncio.run(run())

    assert answers == [answer_of(tool, command) for command in commands]
    assert answers[5].endswith("\tAna likes mate\n     2\tBen does not\n     3\t")
    assert (cleared, texts(memory, agent)) == ("All memory cleared", {})


BAD = [
    ({"command": "create", "path": "/memories/x.md"}, "file_text"),
    ({"command": "create"}, "path"),
    ({"command": "create", "path": "/memories/x.md", "file_text": 5}, "file_text"),
    ({"command": "create", "path": ["/memories/x.md"], "file_text": "a"}, "path"),
    ({"command": "insert", "path": "/memories/y.md", "insert_text": "a"}, "insert_line"),
    ({"command": "str_replace", "path": "/memories/y.md", "old_str": "a"}, "new_str"),
    ({"command": "rename", "old_path": "/memories/y.md"}, "new_path"),
    ({"command": "view"}, "path"),
    ({"command": "view", "path": "/memories/y.md", "view_range": "1-2"}, "view_range"),
    ({"command": "delete"}, "path"),
    ({"command": "frobnicate", "path": "/memories"}, "command"),
    ({}, "command"),
]


@pytest.mark.parametrize(("command", "argument"), BAD)
def test_a_missing_or_wrongly_typed_argument_is_named_and_nothing_written(memory, command, argument):
    agent = next(AGENTS)
    tool, asynchronous = ClaudeMemory(memory, agent=agent), AsyncClaudeMemory(memory, agent=agent)
    tool.call({"command": "create", "path": "/memories/y.md", "file_text": "a\n"})
    before = tool.call({"command": "view", "path": "/memories"})
    with pytest.raises(ToolError, match=f"`{argument}`"):
        tool.call(command)
    with pytest.raises(ToolError, match=f"`{argument}`"):
        asyncio.run(asynchronous.call(command))
    assert tool.call({"command": "view", "path": "/memories"}) == before


def test_an_empty_file_is_listed_and_viewed(tool):
    tool.call({"command": "create", "path": "/memories/empty.md", "file_text": ""})
    assert tool.call({"command": "view", "path": "/memories"}).endswith("\t/memories/empty.md")
    assert tool.call({"command": "view", "path": "/memories/empty.md"}).startswith("Here's the content")
    with pytest.raises(ToolError, match="already exists"):
        tool.call({"command": "create", "path": "/memories/empty.md", "file_text": "more"})
