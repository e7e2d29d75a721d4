package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

func TestPhase(t *testing.T) {
	machine := &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1"}}
	moved := &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "2"}}
	moved.Spec.Host = &hostsv1.HostReference{Name: "h", Claim: "1"}
	another := &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "2"}}
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
			c := newController(newClient(t, tc.cached...), newClient(t, tc.live...))
			host := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}, Spec: tc.spec}
			if _, err := step.Try(t.Context(), host, host, c.Declared().Step("phase")); err != nil {
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
	machine := &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1"}}
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
			there := newClient(t, append(tc.machines, host)...)
			if err := there.Delete(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			c := newController(there, there)
			key := client.ObjectKeyFromObject(host)
			if _, err := c.Declared().Runner(c.Outside).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
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

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := hostsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&hostsv1.Host{}).Build()
}

func newController(cached, live client.Client) *Controller {
	return &Controller{step.Outside{Client: cached, Live: live, Recorder: record.NewFakeRecorder(1), Clock: testclock.NewFakeClock(time.Unix(0, 0))}}
}
