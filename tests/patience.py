"""How long tests wait for a program that should end by itself.

Only a program that hangs is to be given up. How long others take depends on the machine and on what
else it does, so no test says it for itself: pytest ends a test after 300 seconds, and this is less
so that the test can still tell what it waited for.
"""

PATIENCE = 280.0
