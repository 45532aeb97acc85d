"""Benchmarks: time of an epoch, error of the certificate, growth with the graph."""
