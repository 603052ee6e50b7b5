"""Tests of the framework collectors on targets made by hand."""
