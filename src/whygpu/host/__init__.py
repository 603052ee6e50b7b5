"""Access to the machine: whygpu reads every fact about it through a Host."""
