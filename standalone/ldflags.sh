#!/bin/sh
# Prints the linker flags that stamp the Kubernetes version this module is built from.
set -eu
cd "$(dirname "$0")"
version=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' go.mod)
major=${version%%.*}
rest=${version#*.}
pkg=k8s.io/component-base/version
echo "-X $pkg.gitVersion=v$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=${rest%%.*}"
