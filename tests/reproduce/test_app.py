import subprocess
import sys


def test_the_help_names_the_command():
    done = subprocess.run([sys.executable, "-m", "reproduce", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "python -m reproduce" in done.stdout
