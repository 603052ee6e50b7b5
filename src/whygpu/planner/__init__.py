"""Plans which releases fit a machine, from its facts, the wishes and the tables, without I/O."""
