#!/usr/bin/env bash
# The linters: formatting, vet of every module, and the numbers of the house (hack/cmd/house).
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || { printf 'not formatted (gofmt -w):\n%s\n' "$unformatted"; exit 1; }
for module in . api provider hack standalone; do (cd "$module" && go vet ./...); done
(cd hack && go run ./cmd/house ..)
