package controlplane

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// updatable returns a control plane with the Machines a, b and c of version v1.30.0, which is to have v1.30.1 and no Machine in addition
// meanwhile. changed changes the Machine a before it is read.
func updatable(t *testing.T, changed func(*clusterv1.Machine)) (*bench, *kcptest.Workload) {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericMachine"}
	template := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: "GenericMachineTemplate"}
	b, f := three(t)
	testenv.Must(t, b.API.Create(t.Context(), object.CRD(kind)))
	testenv.Must(t, b.API.Create(t.Context(), object.CRD(template)))
	testenv.Must(t, b.API.Create(t.Context(), kcptest.Build().Provided(template, "t", object.Fields{"spec": object.Fields{"template": object.Fields{"spec": object.Fields{"size": "l"}}}})))
	for _, name := range []string{"a", "b", "c"} {
		testenv.Must(t, b.API.Create(t.Context(), kcptest.Build().Provided(kind, name, object.Fields{"spec": object.Fields{"size": "l"}})))
		testenv.Must(t, b.API.Create(t.Context(), &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}))
		b.Update(t, name, func(m *clusterv1.Machine) {
			m.Spec.Version = "v1.30.0"
			m.Spec.InfrastructureRef = *object.Reference(kind, name)
			m.Spec.Bootstrap.ConfigRef = *object.Reference(snapshot.ConfigKind(), name)
			if name == "a" && changed != nil {
				changed(m)
			}
		})
	}
	none, three := intstr.FromInt32(0), int32(3)
	b.KCP.Spec.Replicas, b.KCP.Spec.Version, b.KCP.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = &three, "v1.30.1", &none
	b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(template, "t")
	refresh(t, b, f)
	return b, f
}

// refresh reads the Machines with their objects.
func refresh(t *testing.T, b *bench, f *kcptest.Workload) {
	t.Helper()
	reload(t, b, f)
	spec, err := snapshot.SpecOf(t.Context(), b.KCP)
	testenv.Must(t, err)
	for _, m := range b.Machines {
		m.Config, m.Infrastructure = &bootstrapv1.KubeadmConfig{}, &unstructured.Unstructured{}
		m.Infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1")
		m.Infrastructure.SetKind("GenericMachine")
		for _, obj := range m.CreatedFrom() {
			testenv.Must(t, b.API.Get(t.Context(), client.ObjectKeyFromObject(m), obj))
		}
		testenv.Must(t, m.Compare(t.Context(), spec, b.API.Clock))
	}
}

// written makes a Machine one whose update to a version has begun.
func written(version string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		inplace.Mark(m)
		inplace.MarkPending(m)
		m.Spec.Version = version
	}
}

func TestInPlace(t *testing.T) {
	marked := func(m *clusterv1.Machine) { inplace.Mark(m) }
	for _, tc := range []struct {
		reason    string
		extension *kcptest.Updater
		a         func(*clusterv1.Machine)
		// fails and deleting are true if the update of Machine a has failed, and if a is being deleted.
		fails, deleting bool
		// want is what becomes of Machine a: version, marks, and whether it is being deleted.
		want   string
		asked  int
		failed bool
	}{
		{reason: "a Machine that the extension can update is not replaced", extension: &kcptest.Updater{}, want: "v1.30.1 marked pending", asked: 1},
		{reason: "one that it cannot update is", extension: &kcptest.Updater{Cannot: []string{"version"}}, want: "v1.30.0 deleting", asked: 1},
		{reason: "so is one without an extension", extension: &kcptest.Updater{Unregistered: true}, want: "v1.30.0 deleting"},
		{reason: "and without the feature gates", want: "v1.30.0 deleting"},
		{reason: "nothing is replaced while the extension is down", extension: &kcptest.Updater{Err: errors.New("no route")}, want: "v1.30.0", asked: 1, failed: true},
		{reason: "while one Machine is updated, no other one is", extension: &kcptest.Updater{}, a: written("v1.30.1"), want: "v1.30.1 marked pending"},
		{reason: "a failed update is tried again by the Machine controller: nothing else happens", extension: &kcptest.Updater{}, a: written("v1.30.1"), fails: true, want: "v1.30.1 marked pending"},
		{reason: "an interrupted update is continued", extension: &kcptest.Updater{}, a: marked, want: "v1.30.1 marked pending", asked: 1},
		{reason: "an interrupted one that is no longer possible is abandoned", extension: &kcptest.Updater{Cannot: []string{"version"}}, a: marked, want: "v1.30.0 abandoned", asked: 1},
		{reason: "an interrupted one whose extension was removed, too", extension: &kcptest.Updater{Unregistered: true}, a: marked, want: "v1.30.0 abandoned"},
		{reason: "but not while the extension is down", extension: &kcptest.Updater{Err: errors.New("no route")}, a: marked, want: "v1.30.0 marked", asked: 1, failed: true},
		{reason: "users may change their mind during an update", extension: &kcptest.Updater{}, a: written("v1.30.7"), want: "v1.30.1 marked pending", asked: 1},
		{reason: "if the extension cannot, what has begun is completed first", extension: &kcptest.Updater{Cannot: []string{"version"}}, a: written("v1.30.7"), want: "v1.30.7 marked pending", asked: 1},
		{reason: "if that fails, it is abandoned", extension: &kcptest.Updater{Cannot: []string{"version"}}, a: written("v1.30.7"), fails: true, want: "v1.30.7 abandoned", asked: 1},
		{reason: "a Machine that is being deleted is left alone", extension: &kcptest.Updater{}, a: marked, deleting: true, want: "v1.30.0 marked deleting"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := updatable(t, tc.a)
			if tc.fails {
				b.UpdateStatus(t, "a", func(m *clusterv1.Machine) {
					m.SetConditions([]metav1.Condition{report.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdateFailedReason, "")})
				})
			}
			if tc.deleting {
				b.Deleted(t, "a")
			}
			refresh(t, b, f)
			if tc.extension != nil {
				b.controller.scaler.Extensions = tc.extension
			}
			result, err := b.take(t.Context(), "plan", "scale")
			if (err != nil) != tc.failed || err == nil && !result.Ends() {
				t.Errorf("error %v, result %+v: the step waits", err, result)
			}
			m := &clusterv1.Machine{}
			testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m))
			got := m.Spec.Version
			for _, fact := range []struct {
				word string
				is   bool
			}{
				{"marked", inplace.IsMarked(m)}, {"pending", inplace.IsPending(m)}, {"abandoned", snapshot.Abandoned(m)}, {"deleting", m.DeletionTimestamp != nil},
			} {
				if fact.is {
					got += " " + fact.word
				}
			}
			if got != tc.want {
				t.Errorf("Machine a: %s, want %s; error %v", got, tc.want, err)
			}
			if tc.extension != nil && tc.extension.Asked != tc.asked {
				t.Errorf("the extension was asked %d times, want %d", tc.extension.Asked, tc.asked)
			}
			for _, other := range []string{"b", "c"} {
				testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: other}, m))
				if inplace.IsUpdating(m) || m.DeletionTimestamp != nil {
					t.Errorf("Machine %s is changed, too", other)
				}
			}
		})
	}
}

// Etcd must have a quorum without the member of a Machine that is updated in place.
func TestInPlaceKeepsTheQuorum(t *testing.T) {
	b, f := updatable(t, nil)
	u := &kcptest.Updater{}
	b.controller.scaler.Extensions = u
	f.Mu.Lock()
	f.Members["c"] = false
	f.Mu.Unlock()
	if _, err := b.take(t.Context(), "plan", "scale"); err != nil || u.Asked != 0 {
		t.Errorf("asked %d times, error %v", u.Asked, err)
	}
}

// A Machine that is updated in place is not up to date, and the control plane does not have its version yet: workers wait for that.
func TestUpdatingMachinesAreNotUpToDate(t *testing.T) {
	b, f := updatable(t, written("v1.30.1"))
	if c := upToDateReport(b.Named("a"), "v1.30.1"); c.Status != metav1.ConditionFalse || c.Reason != clusterv1.MachineUpToDateUpdatingReason {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"b", "c"} {
		b.Update(t, name, func(m *clusterv1.Machine) { m.Spec.Version = "v1.30.1" })
	}
	refresh(t, b, f)
	b.KCP.Status.Version = "v1.30.0"
	if _, err := b.take(t.Context(), "plan", "report"); err != nil {
		t.Fatal(err)
	}
	if older := b.KCP.GetV1Beta1Status(); b.KCP.Status.Version != "v1.30.0" || older.UpdatedReplicas != 2 ||
		!condition.IsFalse(b.KCP, controlplanev1.MachinesSpecUpToDateV1Beta1Condition) {
		t.Errorf("version %s, %d updated replicas, conditions %v", b.KCP.Status.Version, older.UpdatedReplicas, b.KCP.GetV1Beta1Conditions())
	}
	b.Update(t, "a", func(m *clusterv1.Machine) { inplace.End(m) })
	refresh(t, b, f)
	if _, err := b.take(t.Context(), "plan", "report"); err != nil {
		t.Fatal(err)
	}
	if older := b.KCP.GetV1Beta1Status(); b.KCP.Status.Version != "v1.30.1" || older.UpdatedReplicas != 3 {
		t.Errorf("afterwards: version %s, %d updated replicas", b.KCP.Status.Version, older.UpdatedReplicas)
	}
}
