"""Guess whether a claim holds, then measure it."""
