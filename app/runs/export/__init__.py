"""A run's model given away: archive, card, and how it is opened."""
