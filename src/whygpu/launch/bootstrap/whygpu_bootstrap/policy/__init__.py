"""The device policy, put into effect in each framework."""
