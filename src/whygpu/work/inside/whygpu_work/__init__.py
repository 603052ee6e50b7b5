"""What whygpu does inside a target interpreter, on the user's own model or function.

Python 3.6 syntax and the standard library, and the frameworks that the target has.
"""
