# One image for every process of Forestall; docker-compose.yml gives the commands.

# Debian 12: the next release has no Java 17.
FROM python:3.11-slim-bookworm AS base
ENV PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore

FROM base AS build
WORKDIR /build
RUN python -m venv /opt/forestall
ENV PATH=/opt/forestall/bin:$PATH
COPY requirements/build.txt requirements/runtime.txt requirements/
# The build tools come first and builds are not isolated, so that every byte that runs has a pinned hash.
RUN pip install --no-deps --require-hashes -r requirements/build.txt
RUN pip install --no-deps --require-hashes --no-build-isolation -r requirements/runtime.txt
COPY pyproject.toml README.md ./
COPY scripts/relocation.py scripts/
COPY streams streams
COPY joins joins
COPY aggregates aggregates
COPY nfa nfa
COPY constraints constraints
COPY workflows workflows
COPY shards shards
COPY pipeline pipeline
COPY service service
COPY api api
COPY forestall forestall
COPY console console
RUN pip wheel --no-deps --no-build-isolation --no-index --wheel-dir dist . && pip install --no-deps --no-index dist/*.whl

FROM base
LABEL org.opencontainers.image.title="Forestall" \
      org.opencontainers.image.description="Complex event processing that knows the workflow behind the events"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home forestall \
    && install --directory --owner forestall --group forestall /data \
    && install --directory --owner forestall --group forestall --mode 700 /var/cache/forestall
COPY --from=build /opt/forestall /opt/forestall
COPY scripts/container-health /usr/local/bin/container-health
ENV PATH=/opt/forestall/bin:$PATH FORESTALL_DATA_DIR=/data NUMBA_CACHE_DIR=/var/cache/forestall NUMBA_CPU_NAME=generic
USER forestall
# Compiled kernels are kept by processor and its features. The image runs on other machines than this one, so they are
# compiled for any processor of the architecture (NUMBA_CPU_NAME), which costs no speed that could be measured: they
# calculate with whole numbers. Whoever sets the variable empty has them compiled anew at the first start.
RUN forestall warm-up
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "forestall.process", "api"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["container-health", "api"]
