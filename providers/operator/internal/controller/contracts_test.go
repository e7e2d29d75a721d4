package controller

import (
	"testing"

	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

func TestContracts(t *testing.T) {
	const older, newer = "v1beta1", "v1beta2"
	for _, tc := range []struct {
		reason   string
		p        providerobject.Provider
		others   []providerobject.Provider
		contract string
		want     string
	}{
		{"the first provider", provider("a", "", false), nil, newer, ""},
		{"the contract of the others", provider("a", "", false), []providerobject.Provider{provider("b", older, false)}, older, ""},
		{"another contract than the others", provider("a", "", false), []providerobject.Provider{provider("b", older, false)}, newer,
			"version v2.0.0 implements contract v1beta2, but InfrastructureProvider n/b implements v1beta1: pause all providers (spec.paused), change their versions, and resume them when all implement one contract"},
		{"an upgrade to another contract", provider("a", older, false), nil, newer,
			"version v2.0.0 implements contract v1beta2, the installed one v1beta1: pause all providers (spec.paused) first"},
		{"not all are paused", provider("a", older, true), []providerobject.Provider{provider("b", older, false)}, newer,
			"version v2.0.0 implements contract v1beta2, the installed one v1beta1: pause all providers (spec.paused) first"},
		{"all are paused", provider("a", older, true), []providerobject.Provider{provider("b", older, true)}, newer, ""},
		{"resumed too early", provider("a", newer, false), []providerobject.Provider{provider("b", older, true)}, newer,
			"version v2.0.0 implements contract v1beta2, but InfrastructureProvider n/b implements v1beta1: pause all providers (spec.paused), change their versions, and resume them when all implement one contract"},
		{"resumed when all have the contract", provider("a", newer, false), []providerobject.Provider{provider("b", newer, true)}, newer, ""},
		{"one that is not installed need not be paused", provider("a", older, true), []providerobject.Provider{provider("b", "", false)}, newer, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := contracts(tc.p, append([]providerobject.Provider{tc.p}, tc.others...), tc.contract); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
