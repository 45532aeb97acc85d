"""CPU kernels, compiled by numba on first use and kept on disk. Imported only when a CPU tensor arrives."""
