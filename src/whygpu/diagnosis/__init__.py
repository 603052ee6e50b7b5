"""Judgement without I/O: from findings to root causes and verdicts, from logs to explanations."""
