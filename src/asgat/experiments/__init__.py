"""The paper's tables and figures, one file each. The only room that knows the paper."""
