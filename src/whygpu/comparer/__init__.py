"""The same work in several lanes: run, measured, compared and judged."""
