#!/usr/bin/env bash
# Writes a release into a local provider repository, as clusterctl reads it: release.sh <repository> <version>
set -euo pipefail
version=${2:?usage: release.sh <repository> <version>}
mkdir -p "$1/infrastructure-hosts/$version"
out=$(cd "$1/infrastructure-hosts/$version" && pwd)
cd "$(dirname "$0")/config"
# The manager converts the kinds that have several versions.
conversion='  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service:
          name: hosts-webhook-service
          namespace: hosts-system
          path: /convert'
{
	for file in crd/*.yaml webhook/*.yaml role.yaml manager.yaml; do
		echo ---
		# Generated webhook manifests have placeholders for names and namespace.
		sed -e "s/:VERSION/:$version/" -e 's/name: webhook-service$/name: hosts-webhook-service/' -e 's/namespace: system$/namespace: hosts-system/' \
			-e 's/name: validating-webhook-configuration$/name: hosts-validating-webhook-configuration/' "$file" |
			if grep -q 'name: v1alpha2$' "$file"; then
				sed "s|^spec:\$|&\\n${conversion//$'\n'/\\n}|"
			else
				cat
			fi
	done
} >"$out/infrastructure-components.yaml"
cp metadata.yaml templates/*.yaml "$out"
