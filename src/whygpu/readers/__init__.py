"""Readers turn text into typed evidence: source code into the program that it tells."""
