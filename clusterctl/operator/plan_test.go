package operator

import (
	"testing"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/template"
)

// The error names what the user has to set: variables, image overrides or both.
func TestChanges(t *testing.T) {
	image := replace.Difference{Object: "Deployment a/m", Images: []string{"x/m:v1 instead of y/m:v1"}}
	role := replace.Difference{Object: "ClusterRole r", Other: true}
	const begin = "infrastructure-toy v1.0.0 is installed, and the operator would change "
	const end = " that it was installed with, or --validate=false to let the operator change it"
	for _, tc := range []struct {
		reason      string
		differences replace.Differences
		want        string
	}{
		{"images alone", replace.Differences{image},
			begin + "Deployment a/m (image x/m:v1 instead of y/m:v1): set the image overrides" + end},
		{"anything else", replace.Differences{role}, begin + "ClusterRole r: set the variables (it has A, B)" + end},
		{"both", replace.Differences{image, role},
			begin + "Deployment a/m (image x/m:v1 instead of y/m:v1), ClusterRole r: set the variables (it has A, B) and the image overrides" + end},
		{"many", replace.Differences{role, role, role, role, role, role, role},
			begin + "ClusterRole r, ClusterRole r, ClusterRole r, ClusterRole r, ClusterRole r and 2 more: set the variables (it has A, B)" + end},
	} {
		d := &Declaration{components: &components.Components{Variables: []template.Variable{{Name: "A"}, {Name: "B"}}}}
		d.Type, d.Name, d.Version = clusterctlv1.InfrastructureProviderType, "toy", "v1.0.0"
		if err := changes(d, tc.differences); err == nil || err.Error() != tc.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tc.reason, err, tc.want)
		}
	}
}
