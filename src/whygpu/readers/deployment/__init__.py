"""Readers for files that decide whether a program gets a GPU: images, services, pods, jobs.

A reader turns text into the types of `model/deployment.py` with their lines. It does not judge, and
it opens no other file: `linter/deployment_files.py` follows the names of files.
"""
