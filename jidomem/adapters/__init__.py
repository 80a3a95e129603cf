"""The adapters: a root behind LangGraph's `BaseStore`, Claude's memory tool, and the function calling of models.

They import the opened root. Start with `langgraph`.
"""
