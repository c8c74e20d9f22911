//! Nothing yet: watchpoints, stepping and suppression by ptrace.
