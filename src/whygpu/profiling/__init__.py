"""Why the steps of a program take as long as they do: pure judgement of what was recorded."""
