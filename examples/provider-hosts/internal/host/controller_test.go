package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

func TestPhase(t *testing.T) {
	machine := &hostsv1.HostMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	claim := &hostsv1.Claim{Machine: "m", ID: "1"}
	type status struct{ Phase, Message string }
	tests := []struct {
		reason       string
		spec         hostsv1.HostSpec
		cached, live []client.Object
		want         status
	}{
		{"free", hostsv1.HostSpec{}, nil, nil, status{"Available", ""}},
		{"free, but not to be had", hostsv1.HostSpec{Unschedulable: true}, nil, nil, status{"Unschedulable", "spec.unschedulable is set"}},
		{"claimed", hostsv1.HostSpec{Claim: claim}, []client.Object{machine}, nil, status{"Claimed", "HostMachine m has claimed the Host"}},
		{"the cache does not show its HostMachine yet", hostsv1.HostSpec{Claim: claim}, nil, []client.Object{machine}, status{"Claimed", "HostMachine m has claimed the Host"}},
		{"the HostMachine's finalizer was removed by hand", hostsv1.HostSpec{Claim: claim}, nil, nil,
			status{"Orphaned", "HostMachine m is gone and did not release the Host: reset it, then remove spec.claim"}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := hostsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			with := func(objects []client.Object) client.Client {
				return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			}
			c := &Controller{step.Outside{Client: with(tc.cached), Live: with(tc.live), Recorder: record.NewFakeRecorder(1), Clock: testclock.NewFakeClock(time.Unix(0, 0))}}
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
