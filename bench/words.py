"""The vocabulary of the generated memories: the parts of a software project, and what happens to them."""

AREAS = (
    "billing", "ingest", "search", "auth", "scheduler", "catalog", "webhooks", "exports", "reports", "gateway",
    "sync", "storage", "notifications", "audit", "pricing", "onboarding", "payments", "inventory", "shipping", "chat",
    "editor", "metrics", "tracing", "config", "migrations", "queue", "cache", "sessions", "uploads", "mailer",
    "imports", "ledger", "tenants", "quotas", "devices", "maps", "forecast", "ranking", "feeds", "backup",
)  # fmt: skip
COMPONENTS = (
    "client", "server", "worker", "parser", "store", "index", "router", "handler", "model", "policy",
    "cache", "codec", "planner", "pool", "reader", "writer", "lock", "retry", "batch", "stream",
    "schema", "view", "token", "clock", "limits", "registry", "session", "format", "merge", "diff",
    "journal", "snapshot", "health", "errors", "rules", "events", "audit", "filters", "cursor", "budget",
)  # fmt: skip
ROLES = ("", "_test", "_api", "_sql", "_async", "_legacy", "_types", "_fixtures", "_cli", "_jobs", "_v2", "_http")
SUFFIXES = (".py", ".py", ".py", ".ex", ".rs", ".ts", ".sql")
AGENTS = (
    "implementer", "architect", "planner", "reviewer", "debugger", "refactorer", "tester", "release-manager",
    "documenter", "security-reviewer", "data-engineer", "performance-engineer", "api-designer", "ops-engineer",
    "front-end-engineer", "migration-lead", "support-engineer", "build-engineer", "accessibility-reviewer",
    "localization-lead", "research-agent", "triage-agent", "dependency-keeper", "on-call-agent",
)  # fmt: skip
CONCERNS = (
    "retry policy", "connection pooling", "time zones", "pagination", "locking", "serialisation format", "error budget",
    "back-off", "cache invalidation", "schema migration", "idempotency", "log retention", "token rotation",
    "rate limits", "batch size", "encoding of money", "ordering of events", "feature flags", "health checks",
    "test isolation", "dependency pinning", "memory limits", "graceful shutdown", "clock skew",
    "partial failures", "index layout", "access control", "naming", "file uploads", "streaming of results",
)  # fmt: skip
TOOLS = (
    "Oxigraph", "SQLite", "PostgreSQL", "Redis", "Kafka", "gRPC", "OpenTelemetry", "Flask", "Ecto", "Tokio", "pytest",
    "Docker", "nginx", "Parquet", "Arrow", "OpenAPI", "JSON Schema", "SHACL", "Terraform", "GitHub Actions",
)  # fmt: skip
ACTIONS = (
    "add", "remove", "split", "rename", "document", "speed up", "test", "rewrite", "bound", "cache", "stream", "log",
    "validate", "migrate", "simplify", "parallelise",
)  # fmt: skip
CAUSES = (
    "an unbounded retry", "a stale cache entry", "two writers without a lock", "a naive local time", "a missing index",
    "an off-by-one in the cursor", "a connection that was never returned", "an exception swallowed in a callback",
    "a default that changed between versions", "an integer overflow", "a test that depended on order",
    "a file handle left open", "a lossy conversion to float", "an unescaped path", "a race between flush and close",
)  # fmt: skip
SYMPTOMS = (
    "times out", "returns duplicates", "loses the last row", "leaks connections", "crashes on empty input",
    "answers 500", "blocks the event loop", "drops events", "shows yesterday's data", "corrupts non-ASCII names",
    "runs out of memory", "deadlocks under load", "ignores the configured limit", "writes half a file",
)  # fmt: skip
REASONS = (
    "it embeds and needs no server", "it was measured twice as fast", "everyone on the team knows it",
    "the alternative has no maintained client", "it keeps the failure local", "it can be undone in one commit",
    "it needs no migration", "the tail latency halved", "it makes the tests deterministic", "support asked for it",
)  # fmt: skip
REMARKS = (
    "The build was slow, the cache was cold, and the third try told us why.",
    "Seen first on staging, later in production under the Monday load.",
    "The change touches the public interface, so the callers were listed before.",
    "Nobody remembered why it was done that way; the history gave no reason either.",
    "A profile of ten minutes showed most of the time in serialisation.",
    "The fix was tried behind a flag for a week.",
    "It only happens when the clock of the worker runs behind that of the database.",
    "The numbers are medians of fifteen runs on an idle machine.",
    "Two teams depend on this and both were asked.",
    "There is a test that fails without it.",
)
ENVIRONMENTS = (
    "staging",
    "production",
    "CI",
    "a laptop",
    "the canary",
    "the load test",
    "the nightly run",
    "a fresh clone",
)
