"""Training runs as the page sees them: started, queued, watched, explained, given away."""
