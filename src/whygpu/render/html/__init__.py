"""Answers as HTML: one page design for every verb, and the same fragments for notebooks."""
