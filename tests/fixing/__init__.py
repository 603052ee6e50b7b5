"""Fixes: copies, remedies carried out, exchanges and the way back."""
