"""Many machines, and the logs of many jobs: gathered, judged one by one, and summarised."""
