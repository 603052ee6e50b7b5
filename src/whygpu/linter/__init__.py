"""Lint: which files, which settings, every detector on every file, and the edits that mend."""
