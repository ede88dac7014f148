import subprocess
import sys

from streams.kept.file_lock import FileLock

HOLDS = """
import sys
from pathlib import Path
from streams.kept.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]))
print(lock.take(0.0), flush=True)
sys.stdin.read()
"""


def test_one_holds_it_until_it_lets_go(tmp_path):
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert one.take(0.0)
    assert one.take(0.0), "it is held already"
    assert not other.take(0.05)
    one.release()
    one.release()
    assert other.take(0.0)
    other.release()


def test_the_end_of_a_process_frees_it(tmp_path):
    words = [sys.executable, "-c", HOLDS, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        lock = FileLock(tmp_path / "lock")
        assert not lock.take(0.0)
        holder.kill()
    assert lock.take(0.0)
    lock.release()


def test_where_there_can_be_no_file_there_is_no_lock(tmp_path):
    lock = FileLock(tmp_path / "nowhere" / "lock")
    assert not lock.take(10.0)
    lock.release()
    assert not lock.take(0.0)
