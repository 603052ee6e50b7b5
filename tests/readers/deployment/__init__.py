"""Tests of the readers for images, services, pods and jobs."""
