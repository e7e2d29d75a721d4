#!/usr/bin/env bash
# Checks the programs for known vulnerabilities in code that they call. Requires https://vuln.go.dev or a mirror:
# hack/vulncheck.sh -db file:///srv/vulndb
set -euo pipefail
cd "$(dirname "$0")/.."
go build -C hack/tools -o "$PWD/bin/govulncheck" golang.org/x/vuln/cmd/govulncheck
failed=
for module in . standalone; do
	(cd "$module" && "$OLDPWD/bin/govulncheck" "$@" ./cmd/...) || failed=1
done
[ -z "$failed" ]
