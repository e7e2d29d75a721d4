package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestReadV1Beta2 reads fields where version V1Beta2 of the contract has them, and ignores those of V1Beta1.
func TestReadV1Beta2(t *testing.T) {
	zone, three, one := "a", int32(3), int32(1)
	full := map[string]any{
		"ready": true, "created": true, "failureReason": "", "failureMessage": "",
		"conditions": clusterv1.Conditions{{Type: "Ready", Status: "False", Severity: "Info", Reason: "Wait", Message: "soon"}},
		"endpoint":   clusterv1.APIEndpoint{}, "endpointPresent": false,
		"failureDomains": []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true), Attributes: map[string]string{"k": "v"}}},
		"providerID":     "x://1", "failureDomain": &zone, "addresses": clusterv1.MachineAddresses(nil), "interruptible": false,
		"dataSecretName": "data", "replicas": counters{Total: &three, Ready: &three, Updated: &one, Unavailable: &one},
		"providerIDs": []string(nil), "machineKind": "", "machines": &three,
	}
	got, err := all(Object{Contract: V1Beta2, Unstructured: parse(t, head+`
spec: {providerID: "x://1", failureDomain: wanted}
status:
  ready: false
  failureReason: Broken
  failureDomain: a
  initialization: {provisioned: true, dataSecretCreated: true}
  dataSecretName: data
  replicas: 3
  readyReplicas: 3
  upToDateReplicas: 1
  availableReplicas: 2
  unavailableReplicas: 7
  updatedReplicas: 7
  failureDomains: [{name: a, controlPlane: true, attributes: {k: v}}]
  conditions: [{type: Ready, status: "False", reason: Wait, message: soon, observedGeneration: 4}]
`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	got, err = all(Object{Contract: V1Beta2, Unstructured: parse(t, head+"status: {ready: true, initialized: true, failureDomains: []}")})
	if err != nil || got["ready"] != false || got["created"] != false {
		t.Errorf("fields of V1Beta1 count: %v, %v", got, err)
	}
	_, err = all(Object{Contract: V1Beta2, Unstructured: parse(t, head+"status: {failureDomains: {a: {}}}")})
	if err == nil || !strings.Contains(err.Error(), "status.failureDomains") {
		t.Errorf("a map of failure domains is no list: %v", err)
	}
}

func TestConditionsWithSeverities(t *testing.T) {
	o := Object{Contract: V1Beta2, Unstructured: parse(t, head+`
status:
  conditions: [{type: Available, status: "False", reason: NotAvailable}]
  deprecated: {v1beta1: {conditions: [{type: Ready, status: "False", severity: Warning, reason: Slow}]}}
`)}
	got, err := o.Conditions()
	if err != nil {
		t.Fatal(err)
	}
	want := clusterv1.Conditions{{Type: "Ready", Status: "False", Severity: "Warning", Reason: "Slow"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("those with severities come first (-want +got):\n%s", diff)
	}
}

func TestControlPlaneVersions(t *testing.T) {
	for _, tc := range []struct {
		reason, fields string
		provisioning   bool
		upgrading      bool
		err            string
	}{
		{reason: "no version yet", fields: `spec: {version: v1.31.0}`, provisioning: true},
		{reason: "one version", fields: `{spec: {version: v1.31.0}, status: {versions: [{version: v1.31.0, replicas: 3}]}}`},
		{
			reason: "the lowest version counts", upgrading: true,
			fields: `{spec: {version: v1.31.0}, status: {version: v1.31.0, versions: [{version: v1.30.0, replicas: 1}, {version: v1.31.0, replicas: 2}]}}`,
		},
		{reason: "before status.versions", upgrading: true, fields: `{spec: {version: v1.31.0}, status: {version: v1.30.0}}`},
		{
			reason: "out of order", err: "ascending",
			fields: `{spec: {version: v1.31.0}, status: {versions: [{version: v1.31.0, replicas: 1}, {version: v1.30.0, replicas: 2}]}}`,
		},
		{reason: "negative", err: "-1", fields: `{spec: {version: v1.31.0}, status: {versions: [{version: v1.31.0, replicas: -1}]}}`},
		{reason: "initialized", fields: `{status: {initialization: {controlPlaneInitialized: true}, version: v1.30.0}}`},
	} {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(tc.fields), &fields); err != nil {
			t.Fatal(err)
		}
		c := ControlPlaneOf(Object{Contract: V1Beta2, Unstructured: &unstructured.Unstructured{Object: fields}})
		provisioning, err := c.IsProvisioning()
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			continue
		}
		upgrading, err2 := c.IsUpgrading()
		if provisioning != tc.provisioning || upgrading != tc.upgrading || err != nil || err2 != nil {
			t.Errorf("%s: provisioning %t, upgrading %t, %v, %v", tc.reason, provisioning, upgrading, err, err2)
		}
		ready, err := c.Ready()
		if initialized, err2 := c.Initialized(); err != nil || err2 != nil || ready != initialized || ready != (tc.reason == "initialized") {
			t.Errorf("%s: ready %t, initialized %t, %v, %v", tc.reason, ready, initialized, err, err2)
		}
	}
}

func TestContract(t *testing.T) {
	crds := definitions{
		"olds.g":    {V1Beta1.Label(): "v1alpha1_v1beta1"},
		"news.g":    {V1Beta2.Label(): "v1beta2"},
		"boths.g":   {V1Beta1.Label(): "v1beta1_v1", V1Beta2.Label(): "v1beta2"},
		"sharers.g": {V1Beta1.Label(): "v1", V1Beta2.Label(): "v1"},
		"empties.g": {V1Beta1.Label(): "v1", V1Beta2.Label(): ""},
	}
	versions := APIVersions{Reader: crds}
	for _, tc := range []struct {
		reason, kind, version string
		want                  Version
		newest                string
	}{
		{"a provider of V1Beta1", "Old", "v1beta1", V1Beta1, "v1beta1"},
		{"a provider of V1Beta2", "New", "v1beta2", V1Beta2, "v1beta2"},
		{"a version before V1Beta2", "Both", "v1beta1", V1Beta1, "v1beta2"},
		{"V1Beta2 wins over a newer version of V1Beta1", "Both", "v1beta2", V1Beta2, "v1beta2"},
		{"a version that supports both follows the newer contract", "Sharer", "v1", V1Beta2, "v1"},
		{"an empty label", "Empty", "v1", V1Beta1, "v1"},
		{"a version without label", "Old", "v1alpha0", V1Beta1, "v1beta1"},
	} {
		kind := schema.GroupVersionKind{Group: "g", Version: tc.version, Kind: tc.kind}
		got, err := versions.Contract(t.Context(), kind)
		newest, err2 := versions.Newest(t.Context(), kind.GroupKind())
		if got != tc.want || newest.Version != tc.newest || err != nil || err2 != nil {
			t.Errorf("%s: contract %s, newest %s, %v, %v", tc.reason, got, newest.Version, err, err2)
		}
	}
	if _, err := versions.Contract(t.Context(), schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Gone"}); err == nil {
		t.Error("a kind that is not installed has a contract")
	}
}
