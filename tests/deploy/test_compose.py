"""The compose file: valid, one image, a health check everywhere, secrets required, commands that exist."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest
import yaml

from house import PACKAGES, ROOT
from service.cli.app import commands
from service.settings import Settings
from service.settings_files import FILE_VARIABLES

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
CLUSTER = {"api", "console", "pipeline", "deliverer", "backtests", "spark-master", "spark-worker"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def spark_classes():
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as archive:
        return set(archive.namelist())


def test_schema():
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yml",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_processes_are_there():
    profiles = {name: service["profiles"] for name, service in SERVICES.items() if name != "redis"}
    watching = {"prometheus": ["monitoring"], "grafana": ["monitoring"]}
    assert profiles == {"forestall": ["single"], **{name: ["cluster"] for name in CLUSTER}, **watching}
    assert set(OURS) == {"forestall", *CLUSTER}
    assert SERVICES["spark-worker"]["deploy"]["replicas"] == 2


def test_one_image():
    assert len({service["image"] for service in OURS.values()}) == 1
    assert len({tuple(service["command"]) for service in OURS.values()}) == len(OURS)


@pytest.mark.parametrize("name", SERVICES)
def test_health_check(name):
    assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


@pytest.mark.parametrize("name", OURS)
def test_health_check_knows_the_process(name):
    assert SERVICES[name]["healthcheck"]["test"] == ["CMD", "container-health", name]
    assert f'"{name}"' in (ROOT / "scripts/container-health").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OURS)
def test_command_exists(name):
    program, *arguments = SERVICES[name]["command"]
    if program == "python":
        assert arguments[0] == "-m"
        spec = importlib.util.find_spec(arguments[1])
        assert spec is not None
        assert not spec.submodule_search_locations or importlib.util.find_spec(f"{arguments[1]}.__main__")
    elif program == "forestall":
        assert arguments[0] in commands()
    else:
        assert program == "spark-class"
        assert arguments[0].replace(".", "/") + ".class" in spark_classes()


def test_settings_are_those_of_the_service():
    known = {f"FORESTALL_{name.upper()}" for name in Settings.model_fields}
    used = {
        name for service in OURS.values() for name in service.get("environment", {}) if name.startswith("FORESTALL_")
    }
    assert {name.partition("__")[0] for name in used} <= known | FILE_VARIABLES


def test_secrets_are_files_that_are_required():
    for service in OURS.values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"KEY|SECRET|PASSWORD|TOKEN", name):
                assert name in FILE_VARIABLES
                assert value in {f"/run/secrets/{secret}" for secret in service["secrets"]}
    for secret in COMPOSE["secrets"].values():  # others are copied into the container, which cannot be written
        assert re.fullmatch(r"\$\{\w+:\?.+\}", secret["file"])


def test_what_waits_waits_for_health():
    for service in SERVICES.values():
        for condition in service.get("depends_on", {}).values():
            assert condition == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_bounds_and_no_more_rights_than_it_needs(name):
    service = SERVICES[name]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    tag = service["image"].partition(":")[2]
    assert re.search(r"\d+\.\d+\.\d+", tag), "a version, and no host of a registry"


@pytest.mark.parametrize("name", OURS)
def test_a_container_can_write_temporary_files_and_tables(name):
    service = SERVICES[name]
    in_memory = {entry.partition(":")[0] for entry in service["tmpfs"]}
    on_disk = {volume["target"] for volume in service.get("volumes", []) if isinstance(volume, dict)}
    assert sorted([*in_memory, *on_disk]) == ["/tmp", "/var/cache/forestall/tables"]
    (tables,) = (entry for entry in service["tmpfs"] if entry.startswith("/var/cache"))
    assert "useradd --uid 10001" in DOCKERFILE
    assert tables.endswith(":uid=10001,gid=10001,mode=0700"), "a folder that others can write is refused"
    assert "NUMBA_CACHE_DIR=/var/cache/forestall " in DOCKERFILE


def test_the_image_has_the_version_of_the_project():
    project = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert project is not None
    assert {service["image"] for service in OURS.values()} == {f"forestall:${{FORESTALL_TAG:-{project[1]}}}"}


def test_redis_forgets_nothing():
    command = " ".join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--appendfsync always" in command
    assert "--maxmemory-policy noeviction" in command
    assert "--maxmemory ${REDIS_MAXMEMORY:-5gb}" in command, "below the limit of the container: refused, not killed"
    assert SERVICES["redis"]["mem_limit"] == "${REDIS_MEMORY:-8g}"
    assert any(volume.endswith(":/data") for volume in SERVICES["redis"]["volumes"])


def test_volumes_are_declared():
    volumes = [volume for service in SERVICES.values() for volume in service.get("volumes", [])]
    used = {volume.partition(":")[0] for volume in volumes if isinstance(volume, str)}
    files = {name for name in used if name.startswith("./")}
    assert used - files == set(COMPOSE["volumes"])
    assert {name for name in files if not (ROOT / name).is_file()} == set()


def test_what_needs_another_service_finds_it_in_its_profile():
    for name, service in SERVICES.items():
        for other in service.get("depends_on", {}):
            assert set(SERVICES[other].get("profiles", service.get("profiles", []))) >= set(
                service.get("profiles", [])
            ), name


def test_a_stop_is_given_the_time_that_it_may_take():
    for name in ("forestall", "pipeline", "deliverer"):
        grace_s = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
        assert grace_s > Settings.model_fields["stop_timeout_s"].default


def test_what_watches_is_reached_from_this_machine_only():
    for name in ("prometheus", "grafana"):
        assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_prometheus_asks_the_api_with_its_key():
    config = yaml.safe_load((ROOT / "docs/prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert secret in SERVICES["api"]["secrets"]
    assert [file in " ".join(SERVICES["prometheus"]["volumes"]) for file in config["rule_files"]] == [True]
    assert [target for static in job["static_configs"] for target in static["targets"]] == ["api:8000"]
    assert SERVICES["forestall"]["networks"]["default"]["aliases"] == ["api"]


def test_image_is_pinned_unprivileged_and_safe():
    assert "--require-hashes" in DOCKERFILE
    assert "PYTHONSAFEPATH=1" in DOCKERFILE
    assert re.search(r"^USER (?!root)", DOCKERFILE, flags=re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*container-health", DOCKERFILE, flags=re.MULTILINE)
    assert "openjdk-17-jre-headless" in DOCKERFILE


def test_image_copies_what_exists_and_every_package():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert set(PACKAGES) <= names
    assert {name for name in names if not (ROOT / name).exists()} == set()
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert all(any(Path(name).match(line.removeprefix("!")) for line in ignored[1:]) for name in names)


def test_the_image_brings_compiled_kernels_for_any_processor():
    lines = DOCKERFILE.splitlines()
    (environment,) = (line for line in lines if line.startswith("ENV PATH=") and "FORESTALL_DATA_DIR" in line)
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", environment)
    assert folder is not None
    assert "NUMBA_CPU_NAME=generic" in environment
    assert f"--owner forestall --group forestall --mode 700 {folder[1]}" in DOCKERFILE
    warm_up = lines.index("RUN forestall warm-up")
    assert lines.index("USER forestall") < warm_up, "what is kept belongs to the user who runs it"
    assert "warm-up" in commands()
    assert not folder[1].startswith("/data"), "a volume would hide it"
