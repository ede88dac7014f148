import shutil

from service.processes.supervisor import rotate


def test_a_log_that_is_too_large_begins_anew_and_two_are_kept(tmp_path):
    log = tmp_path / "api.log"
    with log.open("a") as writer:  # as a process does that keeps its log open
        for number in range(5):
            writer.write(f"{number}" * 10)
            writer.flush()
            assert rotate(log, 9) is True
        writer.write("last")
        writer.flush()
        assert rotate(log, 9) is False
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "api.log": "last",
        "api.log.1": "4" * 10,
        "api.log.2": "3" * 10,
    }


def test_a_log_is_cut_where_no_copy_can_be_written(tmp_path, monkeypatch):
    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", no_room)
    log = tmp_path / "api.log"
    log.write_text("0" * 10)
    assert rotate(log, 9) is True
    assert log.read_text() == ""


def test_a_log_that_is_not_there_is_no_fault(tmp_path):
    assert rotate(tmp_path / "api.log", 9) is False
