"""XLA programs: its GPU compiler is asked where it is installed; elsewhere HLO is modelled."""
