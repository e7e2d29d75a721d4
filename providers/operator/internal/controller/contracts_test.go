package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
)

func TestMixedContracts(t *testing.T) {
	const older, newer = "v1beta1", "v1beta2"
	toy, none := provider("toy", "", false), providerobject.Provider{}
	for _, tc := range []struct {
		reason            string
		p, other          providerobject.Provider
		version, contract string
		want              string
	}{
		{"the first provider", toy, none, "v1.0.0", newer, ""},
		{"the contract of the core provider", toy, coreProvider("v1.10.0", older), "v1.0.0", older, ""},
		{"a newer one than that of the core provider", toy, coreProvider("v1.10.0", older), "v1.0.0", newer,
			"version v1.0.0 implements contract v1beta2, but CoreProvider n/cluster-api works with providers for v1beta1: " +
				"change the version of CoreProvider n/cluster-api first, or pause all providers (spec.paused), change their versions, and resume them"},
		{"an older one", toy, coreProvider("v1.14.0", newer), "v1.0.0", older, ""},
		{"this project's core provider works with both", toy, coreProvider("v2.0.0", older), "v1.0.0", newer, ""},
		{"a core provider that is not installed", toy, coreProvider("", ""), "v1.0.0", newer, ""},
		{"another provider than the core provider", toy, provider("b", older, false), "v1.0.0", newer, ""},
		{"a core provider that works with all others", coreProvider("v1.10.0", older), provider("b", older, false), "v1.14.0", newer, ""},
		{"one that does not", coreProvider("v1.14.0", newer), provider("b", newer, false), "v1.10.0", older,
			"version v1.10.0 works with providers for contract v1beta1, but InfrastructureProvider n/b implements v1beta2: " +
				"change the version of InfrastructureProvider n/b first, or pause all providers (spec.paused), change their versions, and resume them"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			all := []providerobject.Provider{tc.p}
			if tc.other.Object != nil {
				all = append(all, tc.other)
			}
			if got := mixed(tc.p, all, &source.Release{Version: tc.version, Contract: tc.contract}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// coreProvider returns a core provider with an installed version, "" for none.
func coreProvider(version, contract string) providerobject.Provider {
	p := &operatorv1.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cluster-api", UID: types.UID("core")}}
	if version != "" {
		p.Status.InstalledVersion, p.Status.Contract = ptr.To(version), ptr.To(contract)
	}
	return providerobject.Provider{Type: clusterctlv1.CoreProviderType, Object: p}
}
