#!/usr/bin/env bash
# Writes every file that is derived from the API types and prints those that changed.
set -euo pipefail
cd "$(dirname "$0")"
go run ./cmd/generate ..
