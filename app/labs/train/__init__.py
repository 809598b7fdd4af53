"""The workshop: forms, running runs and what they learnt."""
