"""CUDA kernels, compiled by Triton on first use. Imported only when a CUDA tensor arrives."""
