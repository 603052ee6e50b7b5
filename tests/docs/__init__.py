"""Tests of the documentation: its commands, its links, its code and its site."""
