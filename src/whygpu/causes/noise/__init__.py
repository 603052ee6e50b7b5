"""Causes 9xx: messages that look like errors but are harmless."""
