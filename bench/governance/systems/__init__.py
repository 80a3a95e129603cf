"""The adapters, one module for each system."""

SYSTEMS = {
    "jidomem": "bench.governance.systems.jidomem_root:JidomemRoot",
    "server-memory": "bench.governance.systems.server_memory:ServerMemory",
    "langgraph-store": "bench.governance.systems.langgraph_store:LangGraphStore",
}
