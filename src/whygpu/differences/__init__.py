"""Compares two snapshots, and finds the differences that explain a change of verdict."""
