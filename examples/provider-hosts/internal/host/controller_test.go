package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

func TestPhase(t *testing.T) {
	machine, moved, another := newMachine("1"), newMachine("2"), newMachine("2")
	moved.Spec.Host = &hostsv1.HostReference{Name: "h", Claim: "1"}
	claimed := hostsv1.HostSpec{Claim: &hostsv1.Claim{Machine: "m", ID: "1"}}
	orphaned := status{"Orphaned", "HostMachine m is gone and did not release the Host: reset it, then remove spec.claim"}
	tests := []struct {
		reason       string
		spec         hostsv1.HostSpec
		cached, live []client.Object
		want         status
	}{
		{"free", hostsv1.HostSpec{}, nil, nil, status{"Available", ""}},
		{"free, but not to be claimed", hostsv1.HostSpec{Unschedulable: true}, nil, nil, status{"Unschedulable", "spec.unschedulable is set"}},
		{"claimed", claimed, []client.Object{machine}, nil, status{"Claimed", "HostMachine m has claimed the Host"}},
		{"claimed, and moved by clusterctl", claimed, []client.Object{moved}, nil, status{"Claimed", "HostMachine m has claimed the Host"}},
		{"the cache does not show its HostMachine yet", claimed, nil, []client.Object{machine}, status{"Claimed", "HostMachine m has claimed the Host"}},
		{"the HostMachine's finalizer was removed by hand", claimed, nil, nil, orphaned},
		{"a new HostMachine of this name has not claimed the Host", claimed, []client.Object{another}, []client.Object{another}, orphaned},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			api := newAPI(t, tc.live...)
			api.Cache.Hide(tc.live...)
			api.Cache.Show(tc.cached...)
			c := &Controller{api.ForController()}
			host := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}, Spec: tc.spec}
			if _, err := steptest.Run(t.Context(), host, host, c.Declared().Step("phase")); err != nil {
				t.Fatal(err)
			}
			got := condition.Get(host, hostsv1.HostAvailableCondition)
			if diff := cmp.Diff(tc.want, status{host.Status.Phase, got.Message}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if available := string(got.Status) == "True"; available != (tc.want.Phase == "Available") {
				t.Errorf("Available is %s in phase %s", got.Status, tc.want.Phase)
			}
		})
	}
}

// Users may delete a Host at any time. One that is claimed stays, and says why, until the claim is gone.
func TestDeletion(t *testing.T) {
	machine := newMachine("1")
	claimed := hostsv1.HostSpec{Claim: &hostsv1.Claim{Machine: "m", ID: "1"}}
	tests := []struct {
		reason   string
		spec     hostsv1.HostSpec
		machines []client.Object
		stays    bool
		phase    string
	}{
		{"a HostMachine runs on it", claimed, []client.Object{machine}, true, "Claimed"},
		{"its HostMachine vanished: what runs there was not reset", claimed, nil, true, "Orphaned"},
		{"the claim was removed by hand, the finalizer was not", hostsv1.HostSpec{}, nil, false, ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			host := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h", Finalizers: []string{hostsv1.HostFinalizer}}, Spec: tc.spec}
			there := newAPI(t, append(tc.machines, host)...)
			testenv.Must(t, there.Delete(t.Context(), host))
			c := &Controller{there.ForController()}
			key := client.ObjectKeyFromObject(host)
			if _, err := c.Declared().Runner(c.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			got := &hostsv1.Host{}
			if err := there.Get(t.Context(), key, got); apierrors.IsNotFound(err) == tc.stays {
				t.Fatalf("reading the Host: %v", err)
			}
			if got.Status.Phase != tc.phase {
				t.Errorf("the phase is %q, want %q", got.Status.Phase, tc.phase)
			}
		})
	}
}

type status struct{ Phase, Message string }

func newMachine(uid types.UID) *hostsv1.HostMachine {
	return &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: uid}}
}

func newAPI(t *testing.T, objects ...client.Object) *fakeapi.Server {
	t.Helper()
	return fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{hostsv1.AddToScheme}, Objects: objects})
}
