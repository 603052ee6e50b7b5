"""Carries out remedies: in a copy of the environment to prove them, then in the real one.

`proof.py` decides, with the rest of the package as its tools: `remedies.py` (which ones whygpu can
carry out), `copying.py` (the copy), `carrying_out.py` (the commands), `workshop.py` (the folder
next to the environment, the exchange and the way back), `activation.py` (variables that stay).
"""
