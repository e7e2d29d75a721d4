package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFields checks one kind with both labels, v1 for contract v1beta1 and v2 for contract v1beta2, with schemas.
func TestFields(t *testing.T) {
	const (
		oldMachine = "spec: {properties: {providerID: {type: string}}}, status: {properties: {ready: {type: boolean}}}"
		newMachine = "spec: {properties: {providerID: {type: string}}}, status: {properties: {initialization: {properties: {provisioned: {type: boolean}}}}}"
		oldCluster = "status: {properties: {ready: {type: boolean}, failureDomains: {type: object}}}"
		newCluster = "status: {properties: {initialization: {properties: {provisioned: {type: boolean}}}, failureDomains: {type: array}}}"
		oldConfig  = "status: {properties: {ready: {type: boolean}, dataSecretName: {type: string}}}"
		newConfig  = "status: {properties: {initialization: {properties: {dataSecretCreated: {type: boolean}}}, dataSecretName: {type: string}}}"
		oldPlane   = "status: {properties: {ready: {type: boolean}, initialized: {type: boolean}}}"
		newPlane   = "status: {properties: {initialization: {properties: {controlPlaneInitialized: {type: boolean}}}}}"
		scaled     = "spec: {properties: {replicas: {type: integer}, machineTemplate: {properties: {spec: {type: object}}}}}, status: {properties: " +
			"{initialization: {properties: {controlPlaneInitialized: {type: boolean}}}, replicas: {type: integer}, readyReplicas: {type: integer}, upToDateReplicas: {type: integer}}}"
	)
	for _, tc := range []struct {
		reason   string
		provider string
		kind     string
		old, new string
		want     []string
	}{
		{reason: "a machine of both contracts", provider: "infrastructure", kind: "ToyMachine", old: oldMachine, new: newMachine},
		{
			reason: "a machine whose new version has the status of the old contract", provider: "infrastructure", kind: "ToyMachine", old: oldMachine, new: oldMachine,
			want: []string{"version v2 of D has no field status.initialization.provisioned, which contract v1beta2 requires"},
		},
		{
			reason: "a machine whose old version has the status of the new contract", provider: "infrastructure", kind: "ToyMachine", old: newMachine, new: newMachine,
			want: []string{"version v1 of D has no field status.ready, which contract v1beta1 requires"},
		},
		{reason: "a schema that has any field in status", provider: "infrastructure", kind: "ToyMachine", old: oldMachine,
			new: "spec: {properties: {providerID: {type: string}}}, status: {x-kubernetes-preserve-unknown-fields: true}"},
		{reason: "a cluster of both contracts", provider: "infrastructure", kind: "ToyCluster", old: oldCluster, new: newCluster},
		{
			reason: "a cluster whose failure domains are still a map", provider: "infrastructure", kind: "ToyCluster", old: oldCluster,
			new:  strings.Replace(newCluster, "{type: array}", "{type: object}", 1),
			want: []string{"version v2 of D has the field status.failureDomains of type object: in contract v1beta2, it must be array"},
		},
		{
			reason: "a pool without what pools need", provider: "infrastructure", kind: "ToyMachinePool", old: "spec: {properties: {}}", new: newMachine,
			want: []string{
				"version v1 of D has no field spec.providerIDList, which contract v1beta1 requires",
				"version v1 of D has no field status.ready, which contract v1beta1 requires",
				"version v2 of D has no field spec.providerIDList, which contract v1beta2 requires",
			},
		},
		{reason: "templates have no status", provider: "infrastructure", kind: "ToyMachineTemplate", old: "spec: {properties: {}}", new: "spec: {properties: {}}"},
		{reason: "a bootstrap config of both contracts", provider: "bootstrap", kind: "ToyConfig", old: oldConfig, new: newConfig},
		{
			reason: "a bootstrap config that reports ready alone", provider: "bootstrap", kind: "ToyConfig", old: oldConfig, new: oldConfig,
			want: []string{"version v2 of D has no field status.initialization.dataSecretCreated, which contract v1beta2 requires"},
		},
		{reason: "a control plane without replicas", provider: "control-plane", kind: "ToyControlPlane", old: oldPlane, new: newPlane},
		{
			reason: "a control plane with replicas that are not counted", provider: "control-plane", kind: "ToyControlPlane", old: oldPlane, new: scaled,
			want: []string{"version v2 of D has no field status.availableReplicas, which contract v1beta2 requires"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(t, tc.provider, tc.kind, tc.old, tc.new)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// messages checks a release with one kind, and returns the errors, with D for the definition.
func messages(t *testing.T, provider, kind, older, newer string) []string {
	t.Helper()
	group := map[string]string{"infrastructure": "infrastructure", "bootstrap": "bootstrap", "control-plane": "controlplane"}[provider]
	name := strings.ToLower(kind) + "s." + group + ".cluster.x-k8s.io"
	schema := "name: %s, served: true, subresources: {scale: {}}, schema: {openAPIV3Schema: {properties: {%s}}}"
	versions := fmt.Sprintf("versions: [{"+schema+"}, {"+schema+"}]", "v1", older, "v2", newer)
	components := strings.NewReplacer("toymachines.infrastructure.cluster.x-k8s.io", name, "ToyMachine", kind, "group: infrastructure", "group: "+group,
		"infrastructure-toy", provider+"-toy", "cluster.x-k8s.io/v1beta1: v1alpha1_v1beta1", "cluster.x-k8s.io/v1beta1: v1\n    cluster.x-k8s.io/v1beta2: v2",
		"versions: [{name: v1beta1, served: true}, {name: v1alpha1, served: true}]", versions).Replace(good)
	folder := filepath.Join(t.TempDir(), provider+"-toy", "v1.0.0")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		provider + "-components.yaml": components, "metadata.yaml": strings.Replace(goodMetadata, "contract: v1beta1", "contract: v1beta2", 1),
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(folder, "", "")
	if err != nil {
		t.Fatal(err)
	}
	findings, err := r.Check()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range findings {
		if f.Severity == Error {
			out = append(out, strings.ReplaceAll(f.Message, "CustomResourceDefinition "+name, "D"))
		}
	}
	return out
}
