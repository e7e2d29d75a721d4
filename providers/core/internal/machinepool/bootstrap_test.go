package machinepool

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestBootstrap(t *testing.T) {
	withData := func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("old") }
	withoutConfig := func(p *clusterv1.MachinePool) {
		p.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
	}
	failed := func(p *clusterv1.MachinePool) { p.Name, p.UID = "other", "other" }
	type outcome struct {
		Ready     bool
		Data      string
		Condition string
		Failure   string
		Error     string
	}
	tests := map[string]struct {
		reason string
		pool   *clusterv1.MachinePool
		config *unstructured.Unstructured
		want   outcome
	}{
		"UsersData": {"a user provides the data", pool(withData, withoutConfig), nil, outcome{Ready: true, Data: "old", Condition: "True"}},
		"Missing": {"the config does not exist yet", pool(), nil,
			outcome{Condition: "False Info WaitingForDataSecret Waiting for GenericConfig p to exist"}},
		"NotReady": {"the config has no data yet", pool(), provided(configKind, nil),
			outcome{Condition: "False Info WaitingForDataSecret Waiting for GenericConfig p to be ready"}},
		"Ready": {"the name of the data is copied", pool(), provided(configKind, fields{"status": fields{"ready": true, "dataSecretName": "new"}}),
			outcome{Ready: true, Data: "new", Condition: "True"}},
		"Replaced": {"also if the pool has that of another config", pool(withData), provided(configKind, fields{"status": fields{"ready": true, "dataSecretName": "new"}}),
			outcome{Ready: true, Data: "new", Condition: "True"}},
		"Replacing": {"but only when there is one: new machines need data meanwhile", pool(withData), provided(configKind, nil),
			outcome{Data: "old", Condition: "False Info WaitingForDataSecret Waiting for GenericConfig p to be ready"}},
		"NoName": {"the provider does not fulfill its contract", pool(), provided(configKind, fields{"status": fields{"ready": true}}),
			outcome{Ready: true, Error: "GenericConfig default/p is ready but status.dataSecretName is empty: its provider must set it"}},
		"Failed": {"a terminal failure is copied", pool(), provided(configKind, fields{"status": fields{"failureReason": "Unfit", "failureMessage": "no"}}),
			outcome{Condition: "False Info WaitingForDataSecret Waiting for GenericConfig p to be ready",
				Failure: `Unfit: Failure detected from referenced resource bootstrap.cluster.x-k8s.io/v1, Kind=GenericConfig with name "p": no`}},
		"Another": {"another pool has the config", pool(failed), provided(configKind, nil),
			outcome{Error: "taking over GenericConfig: default/p is already controlled by MachinePool p, so it cannot be controlled by MachinePool other: use another object"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{}
			if tc.config != nil {
				objects = append(objects, tc.config)
			}
			w := newWorld(t, objects...)
			p := tc.pool
			_, err := w.step(t, "bootstrap", &scope{pool: p, cluster: build.Cluster()})
			got := outcome{
				Ready: ptr.Deref(p.Status.Initialization.BootstrapDataSecretCreated, false), Data: ptr.Deref(p.Spec.Template.Spec.Bootstrap.DataSecretName, ""),
				Condition: object.State(p, clusterv1.BootstrapReadyV1Beta1Condition),
			}
			if err != nil {
				got.Error = err.Error()
				got.Condition = ""
			}
			got.Failure = failureOf(p)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDataRevision records the revision of the bootstrap data together with its name, and only if the data is that of the config's
// current spec.
func TestDataRevision(t *testing.T) {
	const had = "1"
	recorded := func(p *clusterv1.MachinePool) {
		p.Annotations = map[string]string{clusterv1.MachinePoolBootstrapRevisionAnnotation: "2", clusterv1.MachinePoolDataRevisionAnnotation: had}
	}
	status := func(more fields) fields {
		out := fields{"ready": true, "dataSecretName": "new"}
		maps.Copy(out, more)
		return out
	}
	ready := func(status string) []any { return []any{map[string]any{"type": "Ready", "status": status}} }
	for reason, tc := range map[string]struct {
		status fields // of the config; nil: the pool has none
		want   string
	}{
		"the data is that of the spec":                           {status(fields{"observedGeneration": int64(2)}), "2"},
		"its condition says so, too":                             {status(fields{"observedGeneration": int64(2), "conditions": ready("True")}), "2"},
		"a provider that does not report generations is trusted": {status(nil), "2"},
		"the spec is not observed yet":                           {status(fields{"observedGeneration": int64(1)}), had},
		"the data cannot be generated":                           {status(fields{"observedGeneration": int64(2), "conditions": ready("False")}), had},
		"there is no data yet":                                   {fields{"observedGeneration": int64(2)}, had},
		"data of a user belongs to every revision":               {nil, "2"},
	} {
		t.Run(reason, func(t *testing.T) {
			config := provided(configKind, fields{"status": tc.status})
			config.SetAnnotations(map[string]string{clusterv1.MachinePoolRevisionAnnotation: "2"})
			config.SetGeneration(2)
			p := pool(recorded)
			if tc.status == nil {
				p.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
			}
			w := newWorld(t, config)
			if _, err := w.step(t, "bootstrap", &scope{pool: p, cluster: build.Cluster()}); err != nil {
				t.Fatal(err)
			}
			if got := p.Annotations[clusterv1.MachinePoolDataRevisionAnnotation]; got != tc.want {
				t.Errorf("revision %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTakingOver makes the pool the controller of its objects.
func TestTakingOver(t *testing.T) {
	w := newWorld(t, build.Provided(configKind, "p", nil), build.Provided(poolKind, "p", nil))
	p := pool()
	for _, name := range []string{"bootstrap", "infrastructure"} {
		if _, err := w.step(t, name, &scope{pool: p, cluster: build.Cluster()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []*unstructured.Unstructured{provided(configKind, nil), provided(poolKind, nil)} {
		got := want.DeepCopy()
		testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(got), got))
		if diff := cmp.Diff(want.GetOwnerReferences(), got.GetOwnerReferences()); diff != "" || got.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
			t.Errorf("%s: labels %v, owners -want +got:\n%s", got.GetKind(), got.GetLabels(), diff)
		}
	}
	if _, err := w.step(t, "adopt", &scope{pool: p, cluster: build.Cluster()}); err != nil {
		t.Fatal(err)
	}
	want := pool()
	want.Finalizers = []string{clusterv1.MachinePoolFinalizer}
	object.ControlledBy(want, build.Cluster())
	want.OwnerReferences[0].Controller, want.OwnerReferences[0].BlockOwnerDeletion = nil, nil
	if diff := cmp.Diff(want.ObjectMeta, p.ObjectMeta); diff != "" {
		t.Errorf("metadata of the pool (-want +got):\n%s", diff)
	}
}
