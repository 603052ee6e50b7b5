"""The part of whygpu that runs in the target interpreter, on the user's own model or function.

Python 3.6 syntax and the standard library, and the frameworks that the target has.
"""
