"""The paper's tables and figures, one file each. Only this package knows the paper."""
