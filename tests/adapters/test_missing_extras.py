"""Adapters without their package name the extra that installs it."""

import importlib
import sys

import pytest

from jidomem.errors import Failed

NEEDS = {"claude_memory": ("anthropic.lib.tools", "anthropic"), "langgraph": ("langgraph.store.base", "langgraph")}


@pytest.mark.parametrize("name", NEEDS)
def test_an_adapter_without_its_package_names_the_extra(name, monkeypatch):
    package, extra = NEEDS[name]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"jidomem.adapters.{name}", raising=False)

    with pytest.raises(Failed) as refusal:
        importlib.import_module(f"jidomem.adapters.{name}")

    assert (refusal.value.code, refusal.value.hint) == ("missing_extra", f"pip install 'jidomem[{extra}]'")


def test_an_adapter_needs_no_package_of_another_one(monkeypatch):
    monkeypatch.setitem(sys.modules, NEEDS["langgraph"][0], None)
    for name in NEEDS:
        monkeypatch.delitem(sys.modules, f"jidomem.adapters.{name}", raising=False)

    assert importlib.import_module("jidomem.adapters.claude_memory").ClaudeMemory
