"""The parsers of Python and Elixir files find the definitions that the parsers of the languages find."""

import ast
import json
from pathlib import Path

import pytest

from jidomem.errors import Failed
from jidomem.extras.code import elixir, python
from jidomem.extras.code.python import ModuleName, ModuleNames

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data" / "elixir"
NAMING = ModuleNames(
    lambda path: (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else None,
    lambda path: (ROOT / path).is_file(),
)
DIRECTIVES = {"aliases": "alias", "imports": "import", "requires": "require", "uses": "use"}


def definitions(body, prefix=""):
    """Yield each named function, from the parser of Python."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node.lineno, node.end_lineno
        elif isinstance(node, ast.ClassDef):
            yield from definitions(node.body, f"{prefix}{node.name}.")
        else:
            inner = [getattr(node, part, None) or [] for part in ("body", "orelse", "finalbody")]
            inner += [each.body for part in ("handlers", "cases") for each in getattr(node, part, ())]
            for part in inner:
                yield from definitions(part, prefix)


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield node.module


def spans(functions):
    lines = {}
    for name, first, last in functions:
        before = lines.get(name, (first, last))
        lines[name] = min(before[0], first), max(before[1], last)
    return lines


def test_python_functions_and_imports_are_those_of_the_ast_module():
    paths = sorted([*(ROOT / "jidomem").rglob("*.py"), *(ROOT / "cli").rglob("*.py")])
    for path in paths[::6]:  # some seventy; all agree, and take ten seconds
        data, name = path.read_bytes(), NAMING.name(path.relative_to(ROOT).as_posix())

        extracted = python.extract(data, name)

        tree, (module,) = ast.parse(data), extracted.modules
        assert {each.name: (each.first, each.last) for each in module.functions} == spans(definitions(tree.body)), path
        assert {target for _, target in module.needs} == {*imports(tree)} - {name.name}, path
        assert extracted.faults == ()


@pytest.mark.parametrize("file", sorted(path.name for path in DATA.glob("*.ex")))
def test_elixir_modules_functions_and_directives_are_those_of_its_own_parser(file):
    expected = json.loads((DATA / "parsed.json").read_text("utf-8"))[file]

    modules = elixir.extract((DATA / file).read_bytes()).modules

    functions = {(each.name, f.label, f.private) for each in modules for f in each.functions}
    directives = {(m.name, DIRECTIVES[kind], name) for m in modules for kind, name in m.needs if kind in DIRECTIVES}
    assert [module.name for module in modules] == expected["modules"]
    assert functions == {*map(tuple, expected["functions"])}
    assert directives == {*map(tuple, expected["directives"])}


ELIXIR = b"""\
defmodule Shop.Cart do
  alias Shop.{Item, Price.Rule}
  alias Shop.Stock, as: Shelf
  alias __MODULE__.Line
  @behaviour Shop.Counting
  use GenServer, restart: :transient
  require Logger
  import :lists, only: [sum: 1]

  def add(%Item{} = item, count \\\\ 1)
  def add(item, count) when count > 0, do: Shelf.take(item, count)
  defp rule(x), do: Rule.of(x)
  defmacro left ~> right, do: {left, right}
  def unquote(:computed)(x), do: x

  defmodule Line do
    defstruct [:item]
    def of(item), do: %Line{item: Elixir.Shop.Tax.on(item)}
  end

  defimpl Enumerable, for: [Line, Shop.Basket] do
    def count(_), do: {:error, __MODULE__}
  end

  defmacro __using__(_) do
    quote do
      import Shop.Helpers
      def hidden, do: :not_ours
    end
  end
end

defprotocol Shop.Priced do
  def price(it)
end
"""


def test_elixir_names_are_resolved_through_aliases_nesting_and_implementations():
    by_name = {module.name: module for module in elixir.extract(ELIXIR).modules}

    cart = by_name["Shop.Cart"]
    assert {*by_name} == {
        "Shop.Cart",
        "Shop.Cart.Line",
        "Enumerable.Shop.Cart.Line",
        "Enumerable.Shop.Basket",
        "Shop.Priced",
    }
    assert {*cart.needs} >= {
        ("aliases", "Shop.Item"), ("aliases", "Shop.Price.Rule"), ("aliases", "Shop.Stock"),
        ("aliases", "Shop.Cart.Line"), ("implements", "Shop.Counting"), ("uses", "GenServer"), ("requires", "Logger"),
        ("imports", ":lists"), ("refersTo", "Shop.Helpers"),
    }  # fmt: skip
    assert ("refersTo", "Shop.Tax") in by_name["Shop.Cart.Line"].needs
    assert by_name["Enumerable.Shop.Basket"].needs == (("implements", "Enumerable"), ("refersTo", "Shop.Basket"))
    assert [(each.label, each.private, each.first, each.last) for each in cart.functions] == [
        ("add/2", False, 10, 11), ("rule/1", True, 12, 12), ("~>/2", False, 13, 13), ("__using__/1", False, 25, 30),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "modules", "needs"),
    [
        ("defmodule name do\n  def f, do: Other\n  alias A.B\nend", [], []),
        ("defmodule A do\n  defmodule name() do\n    def f, do: Other\n  end\nend", ["A"], []),
        ("quote do\n  defmodule A do\n    def f, do: Other\n  end\nend", [], []),
        ("defmodule :shop do\n  import :lists\nend", [":shop"], [("imports", ":lists")]),
        ('defmodule :"Elixir.Shop" do\n  alias Elixir.A.B\n  B\nend', ["Shop"], [("aliases", "A.B")]),
        ("defmodule A do\n  defmodule Elixir.B do\n  end\n  B\nend", ["A", "B"], [("refersTo", "B")]),
        ("defmodule A do\n  defmodule B.C do\n  end\n  B.D\nend", ["A", "A.B.C"], [("refersTo", "A.B.D")]),
        ("defmodule A do\n  alias [B.C, :d]\n  C\nend", ["A"], [("aliases", ":d"), ("aliases", "B.C")]),
        ("defmodule A do\n  x.B\n  alias x().{C, D}\nend", ["A"], []),
        ("defmodule A do\n  alias B.{C, __MODULE__.D}\n  require B.{E}.F\nend", ["A"], [("aliases", "B.C")]),
        ("defmodule A do\n  alias\n  use\n  B\nend", ["A"], [("refersTo", "B")]),
    ],
    ids=[
        *("computed", "computed inside", "quoted", "atom", "quoted atom", "whole name", "first part"),
        *("list", "of a value", "not of names", "no arguments"),
    ],
)
def test_elixir_names_are_complete_and_computed_names_are_omitted(code, modules, needs):
    extracted = elixir.extract(code.encode()).modules

    assert [module.name for module in extracted] == modules
    assert [need for module in extracted for need in module.needs] == needs


@pytest.mark.parametrize(
    "code",
    ["alias A" + ".{B}" * 9_000, "alias " + "[" * 3_000 + "A" + "]" * 3_000, "__MODULE__" + ".{A}" * 3_000 + ".B"],
    ids=["dots", "lists", "self"],
)
def test_deeply_nested_elixir_names_are_parsed_without_an_error(code):
    (module,) = elixir.extract(f"defmodule M do\n  {code}\n  def f, do: 1\nend".encode()).modules

    assert [function.label for function in module.functions] == ["f/0"]


COMMANDED = b"""\
defmodule Shop.Order do
  def execute(%Order{id: nil}, %Commands.Place{} = place) do
    %Events.Placed{id: place.id, by: %Customer{}}
  end
  def apply(%Order{} = order, %Events.Placed{id: id}), do: %Order{order | id: id}
end
defmodule Shop.Orders do
  use Commanded.Projections.Ecto, name: "orders"
  project(%Events.Placed{} = placed, fn multi -> multi end)
end
"""


def test_commands_events_and_projections_are_read_from_aggregates_and_projectors():  # C100
    order, orders = elixir.extract(COMMANDED).modules

    assert order.tells == (
        ("Commands.Place", "emitsEvent", "Events.Placed"),
    )  # and no %Customer{}, which it applies not
    assert orders.tells == (("Events.Placed", "handledByProjection", "Shop.Orders"),)


APPLIES = """
  def apply(o, %Placed{}), do: o
  def apply(o, e = %Paid{of: %Money{}}), do: o
  def apply(o, _ = %__MODULE__.Sent{}), do: o
"""


@pytest.mark.parametrize(
    ("code", "emitted"),
    [
        ("def place(%Order{}, %Place{id: id} = c) when id > 0, do: %Placed{id: id}", {"Place Placed"}),
        ("def execute(o, c = %Pay{}), do: [%Placed{}, %Paid{of: %Money{}}]", {"Pay Placed", "Pay Paid"}),
        ("def execute(o, %Send{} = c), do: struct(__MODULE__.Sent, id: c.id)", {"Send O.Sent"}),
        (
            "def execute(o, %Pay{} = c), do: o |> Multi.new() |> Multi.execute(&pay(&1, c)) |> Multi.execute(&send/1)\n"
            "defp pay(o, c), do: sum(c)\ndefp sum(c), do: %Paid{of: c}\ndefp send(o), do: %Sent{}",
            {"Pay Paid"},
        ),
        (
            "def execute(o, %Pay{} = c), do: run(o, c)\ndef execute(o, %Place{} = c), do: run(o, c)\n"
            "defp run(o, %Pay{}), do: %Paid{}\ndefp run(o, %Place{}), do: %Placed{}",
            {"Pay Paid", "Place Placed"},
        ),
        (
            "def execute(o, %Pay{}), do: pay(o)\ndefp pay(o), do: [%Paid{}, again(o)]\ndefp again(o), do: pay(o)",
            {"Pay Paid"},
        ),
        ("def follow(o, %Placed{} = e), do: %Paid{}", set()),
        ("defp place(o, %Place{}), do: %Placed{}", set()),
        ("def place(o, %Place{}, extra), do: %Placed{}", set()),
        ("def execute(o, %Place{}), do: {:error, :placed}", set()),
        ("def apply(o, %Seen{}, now), do: o\ndef execute(o, %Place{}), do: %Seen{}", set()),
    ],
    ids=[
        *(
            "by its name",
            "list",
            "struct",
            "called",
            "clauses",
            "in turn",
            "event",
            "private",
            "three",
            "refused",
            "apply of three",
        ),
    ],
)
def test_an_aggregate_emits_the_applied_events_that_its_command_functions_build(code, emitted):  # C100
    (module,) = elixir.extract(f"defmodule O do\n{APPLIES}\n{code}\nend".encode()).modules

    assert {" ".join((one, other)) for one, name, other in module.tells if name == "emitsEvent"} == emitted


def test_a_module_with_very_many_functions_is_parsed_within_limits():
    calls = "\n".join(
        f"def execute(o, %C{number}{{}}), do: pay(o)\ndefp pay({number}), do: %Paid{{}}" for number in range(9_000)
    )
    sides = "c = " * 9_000

    (module,) = elixir.extract(f"defmodule O do\n{APPLIES}\n{calls}\nend".encode()).modules
    (other,) = elixir.extract(
        f"defmodule O do\n{APPLIES}\ndef execute(o, {sides}%Pay{{}}), do: %Paid{{}}\nend".encode()
    ).modules

    assert (len(module.functions), module.tells) == (3, ())
    assert other.tells == (("Pay", "emitsEvent", "Paid"),)


def test_a_module_without_apply_functions_emits_no_events():
    (module,) = elixir.extract(b"defmodule O do\n  def execute(o, %Pay{}), do: %Paid{}\nend").modules

    assert module.tells == ()


def test_a_command_handler_emits_the_events_it_builds():  # C100
    (module,) = elixir.extract(b"""
defmodule PayHandler do
  @behaviour Commanded.Commands.Handler
  def handle(%Order{paid: true}, %Pay{}), do: {:error, :paid}
  def handle(%Order{} = order, %Pay{} = pay) do
    %Pay{sum: sum} = pay
    with %Rate{} <- rate(sum), {:ok, _} <- check(order) do
      case sum do
        %Fixed{} -> {:ok, %Paid{by: %Customer{id: 1}, sum: sum}}
        _ -> {:error, %Draft{order | paid: false}}
      end
    end
  end
  defp check(order), do: {:ok, %Checked{by: order}}
end
""").modules

    assert module.tells == (("Pay", "emitsEvent", "Checked"), ("Pay", "emitsEvent", "Paid"))


@pytest.mark.parametrize(
    ("module", "code", "handled"),
    [
        ("Orders", "use Shop.Projector\nproject %Placed{of: %Item{}} = placed, _meta do\n%Row{}\nend", ["Placed"]),
        ("Orders", "use Shop.Projector\nproject(%Events.Placed{}, fn multi -> multi end)", ["Events.Placed"]),
        (
            "Shop.OrderProjector",
            "use Commanded.Event.Handler, name: 1\ndef handle(%Placed{} = e, _), do: :ok",
            ["Placed"],
        ),
        ("Projections.Orders", "@behaviour Commanded.Event.Handler\ndef handle(%Placed{}, _), do: :ok", ["Placed"]),
        ("Shop.SendMail", "use Commanded.Event.Handler, name: 1\ndef handle(%Placed{}, _), do: :ok", []),
        ("Shop.OrderProjector", "def handle(%Placed{}, _), do: :ok", []),
        ("Shop.Sphere", "def draw(it), do: project(%Placed{}, it)", []),
    ],
    ids=["do", "fn", "handler", "folder", "a policy", "no handler", "a function"],
)
def test_a_projection_handles_the_events_of_its_clauses(module, code, handled):  # C100
    (extracted,) = elixir.extract(f"defmodule {module} do\n{code}\nend".encode()).modules

    assert list(extracted.tells) == [(event, "handledByProjection", module) for event in handled]


@pytest.mark.parametrize(
    ("text", "name", "needs", "maybe"),
    [
        ("from . import b", ModuleName("p.a"), ["p"], ["p.b"]),
        ("from . import b", ModuleName("p", is_package=True), [], ["p.b"]),
        ("from ..q import (r as s, t)", ModuleName("p.x.a"), ["p.q"], ["p.q.r", "p.q.t"]),
        ("import a.b as c, d", ModuleName("m"), ["a.b", "d"], []),
        ("def f():\n    import late", ModuleName("m"), ["late"], []),
        ("import beside", ModuleName("tests.read.x", folder="tests.read"), ["beside"], ["tests.read.beside"]),
        ("from __future__ import annotations", ModuleName("m"), [], []),
        ("from x import *", ModuleName("m"), ["x"], []),
    ],
)
def test_an_import_has_the_full_name_of_its_target(text, name, needs, maybe):
    (module,) = python.extract(text.encode(), name).modules

    assert [target for _, target in module.needs] == needs
    assert list(module.maybe) == maybe


@pytest.mark.parametrize("level", [2, 3, 9])
def test_an_import_from_outside_the_package_is_a_fault_with_its_line(level):
    extracted = python.extract(b"import os\nfrom " + b"." * level + b"x import y\n", ModuleName("p.a"))

    assert [(fault.line, fault.message) for fault in extracted.faults] == [(2, "this import leads out of the package")]
    assert extracted.modules[0].needs == (("imports", "os"),)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cli/main.py", ModuleName("jidomem_cli.main")),
        ("queries/__init__.py", ModuleName("jidomem.queries", is_package=True)),
        ("jidomem/extras/web/__init__.py", ModuleName("jidomem.extras.web", is_package=True)),
        ("tests/read/reader_world.py", ModuleName("tests.read.reader_world", folder="tests.read")),
        ("src/shop/cart.py", ModuleName("shop.cart", folder="shop")),
        ("src/alone.py", ModuleName("alone")),
        ("setup.py", ModuleName("setup")),
    ],
)
def test_the_name_of_a_python_module_follows_packages_and_project_configuration(path, expected):
    assert NAMING.name(path) == expected


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ('[tool.setuptools.package-dir]\nshop = "code"', "shop.cart"),
        ('[tool.setuptools]\npackage-dir = "code"', "code.cart"),
        ("[tool.setuptools.package-dir]\nshop = 1", "code.cart"),
        ("tool = 1", "code.cart"),
        ("[tool", "code.cart"),
    ],
    ids=["mapped", "no table", "no folder", "no tool", "broken"],
)
def test_the_name_of_a_python_module_follows_its_path_with_an_invalid_configuration(configuration, expected):
    naming = ModuleNames(lambda path: configuration if path == "pyproject.toml" else None, lambda path: False)

    assert naming.name("code/cart.py").name == expected


def test_functions_around_a_syntax_error_are_parsed():
    broken = python.extract(b"def before():\n    pass\n\nx = = 1\n\ndef after():\n    pass\n", ModuleName("m"))
    other = elixir.extract(b"defmodule A do\n  def f, do: 1\n  def g(, do: 2\nend\n")

    assert [function.name for function in broken.modules[0].functions] == ["before", "after"]
    assert [fault.line for fault in broken.faults] == [4]
    assert [module.name for module in other.modules] == ["A"]
    assert [fault.line for fault in other.faults] == [3]


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("%{map | key: 1,\n}", []),
        ("%Order{order |\n  paid: true,\n}", []),
        ("%{key: 1,}", []),
        ("%{map | key: 1,,}", [2]),
        ("call(1,,2)", [2]),
    ],
    ids=["map", "struct", "no change", "two", "call"],
)
def test_valid_elixir_unknown_to_the_grammar_is_no_fault(code, lines):
    extracted = elixir.extract(f"defmodule A do\n  {code}\nend".encode())

    assert [fault.line for fault in extracted.faults] == lines


@pytest.mark.parametrize(
    "data",
    [
        b"(" * 100_000,
        b"[" * 9_000 + b"]" * 9_000,
        b"if x:\n" * 9_000,
        b"\xff\xfe" * 9_000,
        b"def f(:\n x = )\n" * 2_000,
    ],
    ids=["open", "nested", "blocks", "bytes", "broken"],
)
def test_hostile_input_is_parsed_within_limits(data):
    results = [python.extract(data, ModuleName("m")), elixir.extract(data)]

    assert all(len(each.faults) <= 3 for each in results)
    assert [module.name for each in results for module in each.modules] in ([], ["m"])


def test_names_nested_too_deeply_are_a_fault_with_its_line():
    deep = b"def f():\n  " + b"g(" * 600 + b"Shop.Cart" + b")" * 600 + b"\n"
    flat = deep.replace(b"g(" * 600, b"g(" * 90).replace(b")" * 600, b")" * 90)
    elixir_deep = b"defmodule A do\n  def f do\n    " + deep.split(b"\n")[1].strip() + b"\n  end\nend\n"

    parsed = [
        python.extract(deep, ModuleName("m")),
        elixir.extract(elixir_deep),
        python.extract(flat, ModuleName("m")),
    ]

    text = "nested in more than 500 others: names in here may be missing; reduce the nesting"
    assert [[(fault.line, fault.message) for fault in each.faults] for each in parsed] == [
        [(2, text)],
        [(3, text)],
        [],
    ]


def test_a_missing_grammar_is_refused_with_the_install_command():
    with pytest.raises(Failed) as refusal:
        python.grammar("cobol")

    assert refusal.value.code == "missing_extra"
    assert refusal.value.hint == "pip install 'jidomem[code]'"
