"""Helpers for tests of projects: a folder with files, its plan, and the changes that applying it makes."""

from pathlib import Path

from service.client import Client
from service.projects import Change, Plan, apply_plan, plan_project, read_project


def written(folder: Path, files: dict[str, str]) -> Path:
    """The folder, with files by their paths in it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def plan_of(service: Client, folder: Path, *, is_pruned: bool = False) -> Plan:
    """The plan for a folder."""
    return plan_project(service, read_project(folder), folder, is_pruned=is_pruned)


def applied(service: Client, folder: Path, *, is_pruned: bool = False) -> list[tuple[str, str]]:
    """Apply a folder; the action and title of each change."""
    made: list[Change] = []
    apply_plan(service, plan_of(service, folder, is_pruned=is_pruned), made.append)
    return [(change.action, change.title) for change in made]
