"""Tests of what whygpu says about many machines and the logs of many jobs."""
