//! Nothing yet: traces in, findings and schedules out.
