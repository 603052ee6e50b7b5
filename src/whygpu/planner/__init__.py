"""What fits a machine: from its facts, the wishes and the tables to a plan, without I/O."""
