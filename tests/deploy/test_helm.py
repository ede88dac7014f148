"""The Helm chart: rendered by Helm, valid for Kubernetes, unprivileged, with settings and commands that exist."""

import json
import re
from functools import cache
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from jsonschema.exceptions import ValidationError

from house import ROOT
from service.settings import Settings
from service.settings_files import FILE_VARIABLES

CHART = ROOT / "deploy/helm/forestall"
OLDEST, NEWEST = "1.27", "1.37"
SECRETS = {"redis": {"existingSecret": "stores"}, "apiKey": {"existingSecret": "keys"}}
MONITORING = {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True}}
VALUES: dict[str, dict[str, Any]] = {
    "least": SECRETS,
    "monitored": SECRETS | {"monitoring": MONITORING, "console": {"hosts": ["shop.example.org"]}},
    "standalone": SECRETS
    | {
        "pipeline": {
            "sparkMaster": "spark://spark-master.jobs:7077",
            "sparkConf": {"spark.executor.memory": "4g"},
            "storage": {"size": "20Gi", "storageClass": "fast"},
        },
        "settings": {"FORESTALL_LIMITS__MAX_BACKLOG_EVENTS": "20000000"},
        "deliverer": {"replicas": 3, "podAnnotations": {"a": "b"}, "nodeSelector": {"zone": "a"}},
        "backtests": {"enabled": False},
        "console": {"enabled": False},
        "image": {"repository": "images.internal/forestall", "tag": "0.1.0-2", "pullSecrets": ["pull"]},
        "serviceAccount": {"create": False, "name": "runner"},
        "api": {"readiness": "ready", "replicas": 1, "service": {"type": "NodePort", "annotations": {"c": "d"}}},
    },
}
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]


@cache
def rendered(name: str):
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(VALUES[name], name="shop", namespace="events")
    texts = [text for path, text in files.items() if path.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def of_kind(name, *kinds):
    return [document for document in rendered(name) if document["kind"] in kinds]


def pods(name):
    """Pod specifications by process."""
    found = {}
    for document in of_kind(name, "Deployment", "StatefulSet"):
        spec = document["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        found[container["name"]] = spec
    return found


def environment(name, process):
    (settings,) = of_kind(name, "ConfigMap")
    (container,) = pods(name)[process]["containers"]
    return settings["data"] | {one["name"]: one["value"] for one in container["env"]}


def is_native(document):
    return not document["apiVersion"].startswith("monitoring.")


def test_lint():
    found = helm_python.lint(str(CHART), values=SECRETS)
    assert found["errors"] == []
    assert [message["error"] for message in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", VALUES)
def test_kubernetes_takes_every_object(name, version):
    documents = list(filter(is_native, rendered(name)))
    assert len({document["kind"] for document in documents}) > 4
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_the_validation_finds_a_wrong_member():
    (api,) = [one for one in of_kind("least", "Deployment") if one["metadata"]["name"] == "shop-forestall-api"]
    wrong = json.loads(json.dumps(api))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpget"] = {}
    with pytest.raises((kubernetes_validate.ValidationError, ValidationError)):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"redis": {"existingSecret": ""}},
        SECRETS | {"replicas": 2},
        SECRETS | {"settings": {"LOG_LEVEL": "DEBUG"}},
        SECRETS | {"settings": {"FORESTALL_REDIS_URL": "redis://:password@redis/0"}},
        SECRETS | {"image": {"tag": "latest"}},
        SECRETS | {"console": {"hosts": ["https://shop.example.org"]}},
        SECRETS | {"pipeline": {"sparkMaster": "local[*]"}},
        SECRETS | {"pipeline": {"resources": {"limits": {"memory": None}}}},
    ],
)
def test_wrong_values_are_refused(wrong):
    with helm_python.Chart.load(str(CHART)) as chart, pytest.raises(helm_python.HelmError):
        chart.render(wrong, name="shop", namespace="events")


@pytest.mark.parametrize("name", VALUES)
def test_processes_are_those_of_the_compose_file(name):
    optional = {"backtests", "console"} if name == "standalone" else set()
    expected = {"api", "pipeline", "deliverer", "backtests", "console"} - optional
    assert set(pods(name)) == expected
    for process, spec in pods(name).items():
        assert spec["containers"][0]["args"] == COMPOSE[process]["command"]


@pytest.mark.parametrize("name", VALUES)
def test_pods_have_no_more_rights_than_they_need(name):
    for spec in pods(name).values():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec["initContainers"], *spec["containers"]]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["resources"]["requests"]


def test_user_and_folders_are_those_of_the_image():
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for spec in pods("least").values():
        assert f"useradd --uid {spec['securityContext']['runAsUser']}" in image
        (kernels,) = spec["initContainers"]
        assert f"NUMBA_CACHE_DIR={kernels['args'][2]} " in image.replace("\n", " ")
        mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
        assert kernels["args"][2].startswith(mounts["cache"] + "/")
        assert mounts["data"] == environment("least", "pipeline")["FORESTALL_DATA_DIR"]


@pytest.mark.parametrize("name", VALUES)
def test_processes_are_probed(name):
    for process, spec in pods(name).items():
        (container,) = spec["containers"]
        for probe in ("startupProbe", "livenessProbe"):
            if process == "api":
                assert container[probe]["httpGet"] == {"path": "/v1/health", "port": "http"}
            else:
                assert container[probe]["exec"]["command"] == COMPOSE[process]["healthcheck"]["test"][1:]
    asked = {"least": "/v1/health", "monitored": "/v1/health", "standalone": "/v1/ready"}
    assert pods(name)["api"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == asked[name]


@pytest.mark.parametrize("name", VALUES)
def test_settings_exist_and_can_be_used(name, monkeypatch):
    for process in pods(name):
        given = environment(name, process)
        known = {f"FORESTALL_{field.upper()}" for field in Settings.model_fields} | FILE_VARIABLES
        assert {variable.partition("__")[0] for variable in given if variable not in FILE_VARIABLES} <= known
        with monkeypatch.context() as patch:
            for variable, value in given.items():
                if variable not in FILE_VARIABLES:
                    patch.setenv(variable, value)
            settings = Settings()
        assert settings.life_dir is not None
    assert settings.shards == 4


def test_the_console_calls_the_api_and_has_no_secret():
    spec, given = pods("monitored")["console"], environment("monitored", "console")
    assert given["FORESTALL_URL"] == "http://shop-forestall:80"
    assert given["FORESTALL_CONSOLE_HOSTS"] == "shop.example.org,shop-forestall-console"
    assert "secrets" not in {one["name"] for one in spec["volumes"]}
    assert not {"FORESTALL_REDIS_URL_FILE", "FORESTALL_API_KEY_FILE"} & set(given)
    names = {one["metadata"]["name"]: one["spec"].get("ports") for one in of_kind("monitored", "Service")}
    assert names["shop-forestall-console"] == [{"name": "http", "port": 80, "targetPort": "http"}]
    assert spec["containers"][0]["ports"] == [{"name": "http", "containerPort": 8010}]


def test_secrets_are_mounted_as_files_only():
    for process, spec in pods("least").items():
        if process == "console":
            continue
        given = environment("least", process)
        (volume,) = [one["projected"]["sources"] for one in spec["volumes"] if one["name"] == "secrets"]
        paths = {
            item["path"]: (one["secret"]["name"], item["key"]) for one in volume for item in one["secret"]["items"]
        }
        assert paths == {"redis-url": ("stores", "redis-url"), "api-key": ("keys", "api-key")}
        assert {given["FORESTALL_REDIS_URL_FILE"], given["FORESTALL_API_KEY_FILE"]} == {
            f"/run/secrets/forestall/{path}" for path in paths
        }
        assert not {"FORESTALL_REDIS_URL", "FORESTALL_API_KEY"} & set(given)
    assert of_kind("least", "Secret") == []


def test_a_stop_is_given_the_time_that_it_may_take():
    for process, spec in pods("least").items():
        pause = 5 if process == "api" else 0
        assert (
            spec["terminationGracePeriodSeconds"]
            > int(environment("least", process)["FORESTALL_STOP_TIMEOUT_S"]) + pause
        )


def test_one_pipeline_keeps_its_checkpoint():
    (pipeline,) = of_kind("standalone", "StatefulSet")
    assert pipeline["spec"]["replicas"] == 1
    (claim,) = pipeline["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    assert "data" not in {volume["name"] for volume in pipeline["spec"]["template"]["spec"]["volumes"]}


def test_a_cluster_reaches_the_driver_by_name():
    given = environment("standalone", "pipeline")
    (service,) = [one for one in of_kind("standalone", "Service") if one["spec"].get("clusterIP") == "None"]
    name = service["metadata"]["name"]
    assert given["FORESTALL_SPARK__DRIVER_HOST"] == f"{name}-0.{name}.events.svc"
    assert json.loads(given["FORESTALL_SPARK__CONF"]) == {"spark.executor.memory": "4g"}
    assert "FORESTALL_SPARK__DRIVER_HOST" not in environment("least", "pipeline")


def test_budgets_are_for_several_pods_only():
    assert [one["metadata"]["name"] for one in of_kind("least", "PodDisruptionBudget")] == ["shop-forestall-api"]
    assert [one["metadata"]["name"] for one in of_kind("standalone", "PodDisruptionBudget")] == [
        "shop-forestall-deliverer"
    ]


def test_what_selects_finds_its_pods():
    labels = {
        document["metadata"]["name"]: document["spec"]["template"]["metadata"]["labels"]
        for document in of_kind("monitored", "Deployment", "StatefulSet")
    }
    for document in of_kind("monitored", "Deployment", "StatefulSet", "PodDisruptionBudget", "Service"):
        selector = document["spec"]["selector"]
        wanted = selector.get("matchLabels", selector).items()
        assert len([one for one in labels.values() if wanted <= one.items()]) == 1
    (monitor,) = of_kind("monitored", "ServiceMonitor")
    services = of_kind("monitored", "Service")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (found,) = [service for service in services if wanted <= service["metadata"]["labels"].items()]
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in found["spec"]["ports"]}


def test_monitoring_is_off_unless_asked_for():
    assert list(filter(lambda one: not is_native(one), rendered("least"))) == []
    (rules,) = of_kind("monitored", "PrometheusRule")
    assert rules["spec"] == yaml.safe_load((CHART / "rules.yml").read_text(encoding="utf-8"))


def test_versions():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert project is not None
    assert chart["appVersion"] == project[1]
    for spec in pods("least").values():
        assert spec["containers"][0]["image"] == f"forestall:{project[1]}"
    assert {spec["containers"][0]["image"] for spec in pods("standalone").values()} == {
        "images.internal/forestall:0.1.0-2"
    }
