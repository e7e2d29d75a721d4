package webhook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaulting is a test case: a write of a Cluster, and the result of the webhook.
type defaulting struct {
	reason        string
	classes       []client.Object
	old           string
	cluster, want string
	err           string
	waited        time.Duration
	reads         int
}

func unreconciledClass(c *clusterv1.ClusterClass) { c.Generation = 2 }

func pausedClass(c *clusterv1.ClusterClass) {
	c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
}

func TestClusterDefault(t *testing.T) {
	tests := []defaulting{
		{
			reason:  "a Cluster without topology",
			cluster: `{metadata: {name: c, namespace: default}, spec: {infrastructureRef: {name: a}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {infrastructureRef: {name: a}}}`,
		},
		{
			reason:  "versions get a leading v, and variables are defaulted",
			classes: []client.Object{reconciledClass(t, "a")},
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: 1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0, variables: [{name: imageRepository, value: registry.k8s.io}]}}}`,
			reads:   1,
		},
		{
			reason:  "versions of workers get a leading v, too",
			classes: []client.Object{reconciledClass(t, "a")},
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: 1.30.0, workers: {machineDeployments: [{class: w, name: a, version: 1.30.0}, {class: w, name: b}], machinePools: [{class: p, name: p, version: 1.29.0}]}}}}`,
			want: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0, variables: [{name: imageRepository, value: registry.k8s.io}],
				workers: {machineDeployments: [{class: w, name: a, version: v1.30.0}, {class: w, name: b}], machinePools: [{class: p, name: p, version: v1.29.0}]}}}}`,
			reads: 1,
		},
		{
			reason:  "variables are validated",
			classes: []client.Object{reconciledClass(t, "a")},
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0, variables: [{name: imageRepository, value: 1}]}}}`,
			err:     `Cluster.cluster.x-k8s.io "c" is invalid: spec.topology.variables[0].value: Invalid value: "integer": variable "imageRepository": must be of type string: "integer"`,
			reads:   1,
		},
		{
			reason:  "a missing class is waited for only briefly",
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			waited:  200 * time.Millisecond,
			reads:   5,
		},
		{
			reason:  "an unreconciled class is waited for two seconds",
			classes: []client.Object{reconciledClass(t, "a", unreconciledClass)},
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			waited:  2 * time.Second,
			reads:   41,
		},
		{
			reason:  "a paused class is not waited for",
			classes: []client.Object{reconciledClass(t, "a", unreconciledClass, pausedClass)},
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			reads:   1,
		},
		{
			reason:  "a changed topology is defaulted",
			classes: []client.Object{reconciledClass(t, "a")},
			old:     `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			cluster: `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.1}}}`,
			want:    `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.1, variables: [{name: imageRepository, value: registry.k8s.io}]}}}`,
			reads:   1,
		},
		{
			reason:  "a Cluster that is being deleted is not changed",
			cluster: `{metadata: {name: c, namespace: default, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {topology: {classRef: {name: gone}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {topology: {classRef: {name: gone}, version: v1.30.0}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, tt.run)
	}
}

func TestClusterDefaultOfAnUnchangedTopology(t *testing.T) {
	tests := []defaulting{
		{
			reason:  "a default that was added to the class is set by the next write of any field",
			classes: []client.Object{reconciledClass(t, "a")},
			old:     `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			cluster: `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0, variables: [{name: imageRepository, value: registry.k8s.io}]}}}`,
			reads:   1,
		},
		{
			reason:  "a write of another field does not wait for an unreconciled class",
			classes: []client.Object{reconciledClass(t, "a", unreconciledClass)},
			old:     `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			cluster: `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			reads:   1,
		},
		{
			reason:  "a write of another field does not wait for a deleted class",
			old:     `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			cluster: `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			want:    `{metadata: {name: c, namespace: default, labels: {a: b}}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`,
			reads:   1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, tt.run)
	}
}

func (tt defaulting) run(t *testing.T) {
	w := newWorld(t, tt.classes...)
	ctx := t.Context()
	if tt.old != "" {
		old, err := json.Marshal(parse[clusterv1.Cluster](t, tt.old))
		if err != nil {
			t.Fatal(err)
		}
		ctx = admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{OldObject: runtime.RawExtension{Raw: old}}})
	}
	cluster := parse[clusterv1.Cluster](t, tt.cluster)
	err := w.webhook(t).Default(ctx, &cluster)
	if text(err) != tt.err {
		t.Fatalf("%s: error\n%s\nwant\n%s", tt.reason, text(err), tt.err)
	}
	if w.clock.waited != tt.waited || w.reader.gets != tt.reads {
		t.Errorf("%s: waited %s and read %d times, want %s and %d", tt.reason, w.clock.waited, w.reader.gets, tt.waited, tt.reads)
	}
	if tt.err != "" {
		return
	}
	if diff := cmp.Diff(parse[clusterv1.Cluster](t, tt.want), cluster); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
	}
}

func TestClusterDefaultWaitsForTheClass(t *testing.T) {
	w := newWorld(t)
	w.clock.during = func(waited time.Duration) {
		if waited != 100*time.Millisecond {
			return
		}
		if err := w.client.Create(t.Context(), reconciledClass(t, "a")); err != nil {
			t.Error(err)
		}
	}
	cluster := parse[clusterv1.Cluster](t, `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`)
	if err := w.webhook(t).Default(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	if len(cluster.Spec.Topology.Variables) != 1 || w.clock.waited != 100*time.Millisecond {
		t.Errorf("a class created together with its Cluster: %d variables after %s", len(cluster.Spec.Topology.Variables), w.clock.waited)
	}
}

func TestClusterDefaultGateOff(t *testing.T) {
	w := newWorld(t, reconciledClass(t, "a"))
	webhook := w.webhook(t)
	webhook.options.ClusterTopology = false
	cluster := parse[clusterv1.Cluster](t, `{metadata: {name: c, namespace: default}, spec: {topology: {classRef: {name: a}, version: v1.30.0}}}`)
	if err := webhook.Default(t.Context(), &cluster); err != nil || w.reader.gets > 0 || len(cluster.Spec.Topology.Variables) > 0 {
		t.Errorf("without the feature gate, the class must not be read: %v, %d reads", err, w.reader.gets)
	}
	if _, err := webhook.ValidateCreate(t.Context(), &cluster); text(err) != `Cluster.cluster.x-k8s.io "c" is invalid: spec.topology: Forbidden: a topology requires the feature gate ClusterTopology` {
		t.Errorf("without the feature gate, a topology must be rejected: %v", err)
	}
}
