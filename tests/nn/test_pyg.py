import subprocess
import sys


def test_a_deprecation_in_pyg_is_not_shown_to_users():
    code = "import torch, warnings as w; known = list(w.filters); import asgat.nn.pyg; assert w.filters == known"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch.jit.script" not in done.stderr
