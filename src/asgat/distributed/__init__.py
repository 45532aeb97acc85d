"""Training divided among ranks."""
