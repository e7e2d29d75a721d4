#!/usr/bin/env bash
# golangci-lint in every module (.golangci.yml), the house rules (hack/cmd/house), and the licenses of linked dependencies
# (hack/tools/cmd/licenses). Works offline if all modules are in the module cache.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -C hack/tools -o "$PWD/bin/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
failed=
for module in $(git ls-files --cached --others --exclude-standard '*go.mod' | xargs -n1 dirname | sort); do
	echo "lint $module"
	(cd "$module" && "$OLDPWD/bin/golangci-lint" run ./...) || failed=1
done
(cd hack && go run ./cmd/house ..) || failed=1
(cd hack/tools && go run ./cmd/licenses ../..) || failed=1
[ -z "$failed" ]
