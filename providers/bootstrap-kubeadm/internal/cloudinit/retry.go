package cloudinit

import "strings"

// retryScript returns a script that runs kubeadm join phase by phase. A phase is tried up to five times, 15 seconds apart, except
// that of etcd: a member must not be added twice. Preflight warnings (exit code 2) are ignored; exit code 3 is fatal. The phases
// depend on kubeadm's version, so the script checks whether kubeadm has them.
func retryScript(controlPlane bool, verbosity string) string {
	phases := []string{"preflight"}
	if controlPlane {
		phases = append(phases, "control-plane-prepare download-certs", "control-plane-prepare certs",
			"control-plane-prepare kubeconfig", "control-plane-prepare control-plane")
	}
	phases = append(phases, "kubelet-start")
	var out strings.Builder
	out.WriteString(strings.NewReplacer("@CONFIG@", joinConfigPath, "@VERBOSITY@", verbosity).Replace(retryPreamble))
	for _, p := range phases {
		out.WriteString("phase " + p + "\n")
	}
	if controlPlane {
		out.WriteString("if has etcd-join; then once etcd-join; else once control-plane-join etcd; fi\n")
	}
	out.WriteString("if has kubelet-wait-bootstrap; then phase kubelet-wait-bootstrap; fi\n")
	if controlPlane {
		out.WriteString("if has update-status control-plane-join; then phase control-plane-join update-status; fi\n" +
			"phase control-plane-join mark-control-plane\n")
	}
	out.WriteString("log \"joined\"\n")
	return out.String()
}

const retryPreamble = `#!/bin/bash
set -o nounset -o pipefail
log() { echo "[kubeadm-bootstrap] $*" 1>&2; }
fail() { log "$1"; kubeadm reset -f || true; exit 1; }
has() {
  name=$1
  shift
  kubeadm join phase "$@" --help 2>/dev/null | grep -w -e "$name" >/dev/null
}
once() {
  kubeadm join phase "$@" --config @CONFIG@@VERBOSITY@
  code=$?
  if [ "$code" -eq 0 ]; then return 0; fi
  fail "phase $* failed with exit code $code"
}
phase() {
  for attempt in 1 2 3 4 5; do
    kubeadm join phase "$@" --config @CONFIG@@VERBOSITY@
    code=$?
    if [ "$code" -eq 0 ]; then return 0; fi
    if [ "$code" -eq 2 ] && [ "$1" = preflight ]; then return 0; fi
    if [ "$code" -eq 3 ]; then fail "phase $* failed with a fatal error"; fi
    log "phase $* failed with exit code $code, attempt $attempt"
    sleep 15
  done
  fail "phase $* failed too often"
}
`
