"""From text to typed evidence: logs, and source code."""
