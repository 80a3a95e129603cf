"""The adapters: a root behind LangGraph's `BaseStore` and Claude's memory tool.

They import the opened root. Start with `langgraph`.
"""
