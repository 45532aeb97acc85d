"""Time of an epoch, error of the certificate, growth with the graph, start of processes."""
