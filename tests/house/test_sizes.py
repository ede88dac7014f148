"""A folder of a package is not crowded."""

from house import ROOT, project_files
from house.sizes import FOLDER_FILES, crowded_folders

FULL = [f"nfa/planted/part_{number}.py" for number in range(FOLDER_FILES)]


def test_no_folder_of_the_tree_is_crowded():
    paths = [path.relative_to(ROOT).as_posix() for path in project_files()]
    assert [str(found) for found in crowded_folders(paths)] == []


def test_one_file_more_is_refused():
    (found,) = crowded_folders([*FULL, "nfa/planted/one_more.py"])
    assert str(found).startswith("nfa/planted")
    assert list(crowded_folders([*FULL, "nfa/planted/script.lua"]))


def test_fronts_other_files_and_catalogues_do_not_count():
    assert list(crowded_folders([*FULL, "nfa/planted/__init__.py", "nfa/planted/grammar.lark"])) == []
    assert list(crowded_folders(path.replace("nfa/planted", "service/cli") for path in [*FULL, *FULL])) == []
    assert list(crowded_folders(path.replace("nfa/", "tests/") for path in [*FULL, *FULL])) == []
