"""Puts the tally into the table of kinds, as if a package had it.

It is imported before all packages: as a plugin of pytest (``-p``), or as the first module of ``running_commands``.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType

from house import ROOT

TABLE = ROOT / "shards" / "kinds" / "table.py"
ENTRY = "    AggregateKind(),\n"
WITH_TALLY = ENTRY + "    __import__('tests.contracts.tally', fromlist=['TallyKind']).TallyKind(),\n"


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        text = TABLE.read_text(encoding="utf-8")
        assert text.count(ENTRY) == 1
        return compile(text.replace(ENTRY, WITH_TALLY), str(TABLE), "exec")


class _Finder(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname == "shards.kinds.table":
            return spec_from_file_location(fullname, TABLE, loader=_Loader(fullname, str(TABLE)))
        return None


assert "shards.kinds.table" not in sys.modules
sys.meta_path.insert(0, _Finder())
