package choose

import (
	"strings"
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
)

func TestOrigin(t *testing.T) {
	at := func(kind clusterctlv1.ProviderType, name, version string) *components.Components {
		p, err := packages.Find(packages.Defaults(), kind, name)
		if err != nil {
			t.Fatal(err)
		}
		return &components.Components{Provider: p, Version: version}
	}
	core := clusterctlv1.CoreProviderType
	elsewhere := at(core, "cluster-api", "v1.14.0")
	elsewhere.Provider.URL = "/srv/cluster-api/latest/core-components.yaml"
	for _, tc := range []struct {
		reason string
		c      *components.Components
		chosen string
		want   string
	}{
		{"a release of this project", at(core, "cluster-api", "v2.0.0"), "", ""},
		{"one of Cluster API v1", at(core, "cluster-api", "v1.14.0"), "", "cluster-api v1.14.0: Cluster API v1 is installed"},
		{"one that the user chose", at(core, "cluster-api", "v1.14.0"), "v1.14.0", ""},
		{"one that the user has configured", elsewhere, "", ""},
		{"a provider of another project", at(clusterctlv1.InfrastructureProviderType, "aws", "v1.5.0"), "", ""},
	} {
		items := []Item{{Type: tc.c.Provider.Type, Ref: packages.Ref{Name: tc.c.Provider.Name, Version: tc.chosen}}}
		err := origin([]*components.Components{tc.c}, items)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}
