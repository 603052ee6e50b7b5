"""Makers of files that are kept in the repository: documentation, schemas, new causes."""
