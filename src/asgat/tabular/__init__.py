"""A user's files: tables of nodes and edges, their columns, encoding and labels."""
