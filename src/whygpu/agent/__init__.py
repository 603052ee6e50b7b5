"""The verbs as tools of the Model Context Protocol, for agents that help people with their GPU."""
