package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzStrategies checks that strategies are deterministic and yield names that fit into a label value, and that the default
// strategies yield valid names if the names of Cluster and topology are valid.
func FuzzStrategies(f *testing.F) {
	for _, source := range []string{
		"", controlPlaneTemplate, machineDeploymentTemplate, machinePoolTemplate, "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}", "{{ .random }}{{ .random }}", "é{{ .cluster.name }}",
		"{{ range 100 }}日{{ end }}", "{{ range 30 }}a-{{ end }}", "{{ printf \"%64s\" .random }}", "{{ .cluster.missing }}", "A b\n", "x.{{ .cluster.name }}.y",
	} {
		f.Add(source, "demo", "md-0", "bcdfg")
		f.Add(source, strings.Repeat("long", 16), strings.Repeat("a-", 31)+"b", "bcdfg")
		f.Add(source, "a.b.c-d", "1", "22222")
	}
	f.Fuzz(func(t *testing.T, source, cluster, topology, random string) {
		if len(source) > 4<<10 || len(random) != 5 || len(validation.IsDNS1123Label(random)) > 0 {
			t.Skip("random characters come from package naming")
		}
		data := Data{Cluster: cluster, Topology: topology, Random: random}
		for kind, strategy := range map[string]Strategy{"control plane": ControlPlaneStrategy, "deployment": MachineDeploymentStrategy, "pool": MachinePoolStrategy} {
			name, err := strategy(source, data)
			if again, errAgain := strategy(source, data); again != name || (err == nil) != (errAgain == nil) {
				t.Errorf("%s: %q, %v, then %q, %v", kind, name, err, again, errAgain)
			}
			if len(name) > validation.LabelValueMaxLength {
				t.Errorf("%s: %q has %d bytes", kind, name, len(name))
			}
			if source != "" || len(validation.IsDNS1123Subdomain(cluster))+len(validation.IsDNS1123Label(topology)) > 0 {
				continue
			}
			if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 || !strings.HasSuffix(name, random) {
				t.Errorf("%s: Cluster %q and topology %q yield %q, %v", kind, cluster, topology, name, err)
			}
		}
	})
}
