"""Tests of the judgement that findings and logs get."""
