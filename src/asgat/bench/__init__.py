"""The truth about speed, memory and error, measured in one run with what they are compared to."""
