"""How long tests wait for a program that should end by itself.

The limit is only for programs that hang. The time of others depends on the machine and its load, so
no test has its own limit. pytest ends a test after 300 seconds; this limit is shorter, so that the
test can still report what it waited for.
"""

PATIENCE = 280.0
