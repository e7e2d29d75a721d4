package importpaths

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hook is the apiVersion of all hooks.
const hook = `"hooks.runtime.cluster.x-k8s.io/v1alpha1"`

func TestPrograms(t *testing.T) {
	tests := []struct {
		reason, program, module, sums, want string
	}{
		{
			reason: "the kinds of v1.7 are at the paths of v1.7, and one line replaces their module", program: "types-v1.7", module: root, sums: "go.sum",
			want: `addons.cluster.x-k8s.io/v1beta1 ClusterResourceSet
cluster.x-k8s.io/v1beta1 Cluster
cluster.x-k8s.io/v1beta1 MachinePool
controlplane.cluster.x-k8s.io/v1beta1 KubeadmControlPlane
ipam.cluster.x-k8s.io/v1alpha1 IPAddress
ipam.cluster.x-k8s.io/v1beta1 IPAddress
runtime.cluster.x-k8s.io/v1alpha1 ExtensionConfig
`,
		},
		{
			reason: "the kinds of v1.14 are in the module for types alone", program: "types-v1.14", module: types, sums: "modules/api/go.sum",
			want: newTypes,
		},
		{reason: "the same program, with the root module", program: "types-v1.14", module: root, sums: "go.sum", want: newTypes},
		{
			reason: "an extension of v1.7 gets v1beta1, without asking for it", program: "extension-v1.7", module: root, sums: "go.sum",
			want: `{"kind":"DiscoveryResponse","apiVersion":` + hook + `,"status":"Success","message":"","handlers":[{"name":"before-upgrade",` +
				`"requestHook":{"apiVersion":` + hook + `,"hook":"BeforeClusterUpgrade"}}]}
{"kind":"BeforeClusterUpgradeResponse","apiVersion":` + hook + `,"status":"Success","message":"upgrading a cluster of class c1","retryAfterSeconds":0}
`,
		},
		{
			reason: "an extension of v1.14 asks for v1beta2", program: "extension-v1.14", module: root, sums: "go.sum",
			want: `{"kind":"DiscoveryResponse","apiVersion":` + hook + `,"status":"Success","message":"","handlers":[{"name":"before-upgrade",` +
				`"requestHook":{"apiVersion":` + hook + `,"hook":"BeforeClusterUpgrade"},"payloadVersion":"v1beta2"}]}
{"kind":"BeforeClusterUpgradeResponse","apiVersion":` + hook + `,"status":"Success","message":"upgrading a cluster of class c1","retryAfterSeconds":0}
`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			dir := outside(t, tc.program, tc.module, tc.sums)
			if diff := cmp.Diff(tc.want, run(t, dir, "run", ".")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const newTypes = `addons.cluster.x-k8s.io/v1beta1 ClusterResourceSet
addons.cluster.x-k8s.io/v1beta2 ClusterResourceSet
bootstrap.cluster.x-k8s.io/v1beta1 KubeadmConfig
cluster.x-k8s.io/v1beta1 Cluster
cluster.x-k8s.io/v1beta2 Machine
controlplane.cluster.x-k8s.io/v1beta1 KubeadmControlPlane
controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane
ipam.cluster.x-k8s.io/v1alpha1 IPAddress
ipam.cluster.x-k8s.io/v1beta1 IPAddress
ipam.cluster.x-k8s.io/v1beta2 IPAddress
runtime.cluster.x-k8s.io/v1alpha1 ExtensionConfig
runtime.cluster.x-k8s.io/v1beta2 ExtensionConfig
hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=UpdateMachine
`

// TestTypesNeedLittle lists the modules that a program gets with the module for types alone. None of them is a client or a server.
func TestTypesNeedLittle(t *testing.T) {
	dir := outside(t, "types-v1.14", types, "modules/api/go.sum")
	got := strings.Fields(run(t, dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	slices.Sort(got)
	want := []string{
		"example.org/program", "github.com/fxamacker/cbor/v2", "github.com/go-logr/logr", "github.com/json-iterator/go",
		"github.com/modern-go/concurrent", "github.com/modern-go/reflect2", "github.com/x448/float16", "go.yaml.in/yaml/v2",
		"golang.org/x/net", "golang.org/x/text", "gopkg.in/inf.v0", "k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery",
		"k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils", "sigs.k8s.io/cluster-api/api", "sigs.k8s.io/json", "sigs.k8s.io/randfill",
		"sigs.k8s.io/structured-merge-diff/v6",
	}
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
