"""What a node attends to, and through which frequencies."""
