"""The adapters to agent frameworks: LangGraph stores and Claude's memory tool."""
