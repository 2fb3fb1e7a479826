#!/bin/bash
# Installs Waybill's packages and Spark's jars into a new folder: infra/systemd/install.sh FOLDER
# Run it in a clone, as root. docs/systemd.md says what comes before and after. The Dockerfile does the same.
set -euo pipefail
folder=${1:?the new folder, such as /opt/waybill-1}
cd "$(dirname "$0")/../.."
test ! -e "$folder" || { echo "$folder is there already" >&2; exit 1; }
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# uv, with the hash that the lock says.
python3 -m venv "$work/uv"
"$work/uv/bin/pip" install --quiet --require-hashes --only-binary :all: -r requirements.bootstrap.lock
export PATH=$work/uv/bin:$PATH UV_LINK_MODE=copy

# Waybill's own packages come from this clone: no index is asked for their names.
uv build --quiet --all-packages --wheel --out-dir "$work/wheels"
for wheel in "$work"/wheels/*.whl; do
  name=$(basename "$wheel")
  echo "${name%%-*} @ file://$wheel"
done > "$work/members.txt"
into() {
  uv pip install --quiet --python "$1/bin/python" --compile-bytecode \
    --constraints requirements.lock --constraints requirements.java.lock \
    --constraints "$work/members.txt" \
    --build-constraints requirements.build.txt "${@:2}"
}

# Spark's connectors, each with the sha256 that jars.lock says.
python3 -m venv --without-pip "$work/local"
into "$work/local" waybill-local
XDG_CACHE_HOME=$work/cache "$work/local/bin/python" -m waybill_local.get_jars spark

trap 'rm -rf "$work" "$folder"' EXIT
python3 -m venv --without-pip "$folder"
into "$folder" waybill-{ingress,status,token-tracker,stage-runner} 'waybill-client[cli]'
mv "$work"/cache/waybill/jars/spark-* "$folder/spark_jars"
trap 'rm -rf "$work"' EXIT
echo "installed into $folder"
