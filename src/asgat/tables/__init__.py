"""Candidate tables: attention at linear cost, with a certificate."""
