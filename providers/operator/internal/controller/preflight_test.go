package controller

import (
	"testing"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

// TestPreflight tries objects that do not fit the others. All checks are in package preflight.
func TestPreflight(t *testing.T) {
	tryMistakes(t, operatorv1.PreflightCheckCondition, []mistake{
		{reason: "an unknown provider", name: "unknown", spec: "fetchConfig: null", because: "UnknownProvider",
			words: []string{"InfrastructureProvider unknown is not built in", "set spec.fetchConfig, or correct metadata.name"}},
		{reason: "a second core provider", kind: "CoreProvider", name: "cluster-api", because: "MoreThanOneExists",
			words: []string{"CoreProvider capi-system/cluster-api exists", "delete one of both objects"}},
		{reason: "a core provider with another name", kind: "CoreProvider", name: "capi", because: "IncorrectCoreProviderNameReason",
			words: []string{"metadata.name of a CoreProvider must be cluster-api"}},
		{reason: "a provider in a second namespace", name: "in-memory", because: "MoreThanOneExists",
			words: []string{"InfrastructureProvider capim-system/in-memory exists", "delete one of both objects"}},
	})
}

// TestDowngrade: an older minor version is rejected, and the installed version stays; with the installed version, all is well again.
func TestDowngrade(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.change(p, "{version: v0.6.0}")
	p = w.reconcile(p)
	w.reports(p, operatorv1.PreflightCheckCondition, "False UnsupportedProviderDowngradeReason: ", "spec.version v0.6.0", "the installed v1.0.0")
	w.change(p, "{version: v1.0.0}")
	p = w.reconcile(p)
	w.reports(p, operatorv1.PreflightCheckCondition, "True")
	w.reports(p, operatorv1.ReadyCondition, "True")
}

// simpleProvider declares the provider of a simple ConfigMap.
const simpleProvider = `
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: InfrastructureProvider
metadata: {name: x, namespace: x-system, uid: x, generation: 1}
spec: {version: v1.0.0, fetchConfig: {selector: {matchLabels: {provider-components: x}}}}
`
