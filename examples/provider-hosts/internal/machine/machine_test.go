package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).Declared().Names())
}

// build builds the objects of Cluster c in namespace ns.
var build = object.Builder{Namespace: "ns"}

func newAPI(t *testing.T, objects ...client.Object) *fakeapi.Server {
	t.Helper()
	return fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{hostsv1.AddToScheme}, Objects: objects})
}

func newController(api *fakeapi.Server) *Controller { return &Controller{api.ForController()} }

func newHost(name string, change ...func(*hostsv1.Host)) *hostsv1.Host {
	h := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, f := range change {
		f(h)
	}
	return h
}

func claimedBy(machine string, id types.UID) func(*hostsv1.Host) {
	return func(h *hostsv1.Host) {
		h.Spec.Claim = &hostsv1.Claim{Machine: machine, ID: id}
		h.Finalizers = []string{hostsv1.HostFinalizer}
	}
}

func newMachine(change ...func(*hostsv1.HostMachine)) *hostsv1.HostMachine {
	m := &hostsv1.HostMachine{ObjectMeta: build.Meta("HostMachine", "m")}
	m.UID, m.Finalizers = "1", []string{hostsv1.HostMachineFinalizer}
	for _, f := range change {
		f(m)
	}
	return m
}

func has(host string, id types.UID) func(*hostsv1.HostMachine) {
	return func(m *hostsv1.HostMachine) { m.Spec.Host = &hostsv1.HostReference{Name: host, Claim: id} }
}

func TestClaim(t *testing.T) {
	tests := []struct {
		reason string
		// machine and cached are what the controller reads, live and lives what there is; nil: the same.
		machine      *hostsv1.HostMachine
		live         *hostsv1.HostMachine
		cached       *hostsv1.Host
		lives        *hostsv1.Host
		want         *hostsv1.HostReference
		wantClaim    *hostsv1.Claim
		wantStale    bool
		wantTerminal bool
	}{
		{reason: "a free Host is claimed", machine: newMachine(), cached: newHost("h"),
			want: &hostsv1.HostReference{Name: "h", Claim: "1"}, wantClaim: &hostsv1.Claim{Machine: "m", ID: "1"}},
		{reason: "a claim that was not written down before a crash is found", machine: newMachine(), cached: newHost("h", claimedBy("m", "1")),
			want: &hostsv1.HostReference{Name: "h", Claim: "1"}, wantClaim: &hostsv1.Claim{Machine: "m", ID: "1"}},
		{reason: "another HostMachine's Host is not taken", machine: newMachine(), cached: newHost("h", claimedBy("other", "2")),
			wantClaim: &hostsv1.Claim{Machine: "other", ID: "2"}},
		{reason: "the Host of an earlier HostMachine of this name is not taken: it is not reset", machine: newMachine(), cached: newHost("h", claimedBy("m", "0")),
			wantClaim: &hostsv1.Claim{Machine: "m", ID: "0"}},
		{reason: "the cache shows a Host as free that is not", machine: newMachine(), cached: newHost("h"), lives: newHost("h", claimedBy("other", "2")),
			wantClaim: &hostsv1.Claim{Machine: "other", ID: "2"}},
		{reason: "the cache shows a HostMachine that is being deleted: its claim would never be released", machine: newMachine(), live: newMachine(object.Deleting), cached: newHost("h"),
			wantStale: true},
		{reason: "the cache shows a HostMachine that was replaced", machine: newMachine(), cached: newHost("h"),
			live: newMachine(func(m *hostsv1.HostMachine) { m.UID = "2" }), wantStale: true},
		{reason: "the cache shows a HostMachine that has a Host by now: it must not get a second one", machine: newMachine(), live: newMachine(has("other", "1")), cached: newHost("h"),
			wantStale: true},
		{reason: "a HostMachine keeps its Host when clusterctl move gives it another UID",
			machine: newMachine(has("h", "0")), cached: newHost("h", claimedBy("m", "0")),
			want: &hostsv1.HostReference{Name: "h", Claim: "0"}, wantClaim: &hostsv1.Claim{Machine: "m", ID: "0"}},
		{reason: "the cache does not show the claim yet", machine: newMachine(has("h", "1")), cached: newHost("h"), lives: newHost("h", claimedBy("m", "1")),
			want: &hostsv1.HostReference{Name: "h", Claim: "1"}, wantClaim: &hostsv1.Claim{Machine: "m", ID: "1"}},
		{reason: "a Host that another HostMachine has by now is lost", machine: newMachine(has("h", "1")), cached: newHost("h", claimedBy("other", "2")),
			want: &hostsv1.HostReference{Name: "h", Claim: "1"}, wantClaim: &hostsv1.Claim{Machine: "other", ID: "2"}, wantTerminal: true},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			live, lives := tc.live, tc.lives
			if live == nil {
				live = tc.machine
			}
			if lives == nil {
				lives = tc.cached
			}
			there := newAPI(t, live, lives)
			if tc.live != nil {
				there.Cache.Show(tc.machine)
			}
			if tc.lives != nil {
				tc.cached.ResourceVersion = "1" // an older one
				there.Cache.Show(tc.cached)
			}
			c := newController(there)
			s := &scope{obj: tc.machine.DeepCopy(), machine: &clusterv1.Machine{}}
			_, err := c.claim(t.Context(), s)
			if lost := (*step.Error)(nil); (err != nil && step.IsStale(err)) != tc.wantStale || errors.As(err, &lost) != tc.wantTerminal ||
				err != nil && !tc.wantStale && !tc.wantTerminal {
				t.Fatalf("the error is %v", err)
			}
			if diff := cmp.Diff(tc.want, s.obj.Spec.Host); diff != "" {
				t.Errorf("spec.host (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantClaim, read(t, there).Spec.Claim); diff != "" {
				t.Errorf("the Host's claim (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, from client.Reader) *hostsv1.Host {
	t.Helper()
	host := &hostsv1.Host{}
	testenv.Must(t, from.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "h"}, host))
	return host
}

// Both have read that the Host is free.
func TestTwoClaimAtOnce(t *testing.T) {
	there := newAPI(t, newMachine(), newHost("h"))
	there.Before = func(r fakeapi.Request) error {
		if r.Verb != "patch" {
			return nil
		}
		there.Before = nil
		other := read(t, there)
		claimedBy("other", "2")(other)
		return there.Update(t.Context(), other)
	}
	c := newController(there)
	s := &scope{obj: newMachine(), machine: &clusterv1.Machine{}}
	if _, err := c.claim(t.Context(), s); err == nil || !step.IsStale(err) {
		t.Errorf("the second of two claims ends with %v, want a conflict", err)
	}
	if diff := cmp.Diff(&hostsv1.Claim{Machine: "other", ID: "2"}, read(t, there).Spec.Claim); diff != "" {
		t.Errorf("the Host's claim (-want +got):\n%s", diff)
	}
	if s.obj.Spec.Host != nil {
		t.Errorf("the HostMachine believes that it has %v", s.obj.Spec.Host)
	}
}

func TestSuits(t *testing.T) {
	worker, controlPlane := &clusterv1.Machine{}, &clusterv1.Machine{}
	controlPlane.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	zoned := &clusterv1.Machine{Spec: clusterv1.MachineSpec{FailureDomain: "b"}}
	roles := func(roles ...hostsv1.Role) func(*hostsv1.Host) { return func(h *hostsv1.Host) { h.Spec.Roles = roles } }
	zone := func(name string) func(*hostsv1.Host) {
		return func(h *hostsv1.Host) { h.Labels = map[string]string{hostsv1.ZoneLabel: name} }
	}
	tests := []struct {
		reason  string
		host    *hostsv1.Host
		machine *clusterv1.Machine
		want    bool
	}{
		{"a Host without roles is for everything", newHost("h"), controlPlane, true},
		{"a Host for workers", newHost("h", roles(hostsv1.RoleWorker)), controlPlane, false},
		{"a Host for control planes", newHost("h", roles(hostsv1.RoleControlPlane)), worker, false},
		{"a Host for both", newHost("h", roles(hostsv1.RoleControlPlane, hostsv1.RoleWorker)), worker, true},
		{"the failure domain of the Machine", newHost("h", zone("b")), zoned, true},
		{"another failure domain", newHost("h", zone("a")), zoned, false},
		{"no failure domain", newHost("h"), zoned, false},
		{"a Machine that may be anywhere", newHost("h", zone("a")), worker, true},
		{"claimed", newHost("h", claimedBy("other", "2")), worker, false},
		{"unschedulable", newHost("h", func(h *hostsv1.Host) { h.Spec.Unschedulable = true }), worker, false},
		{"being deleted", newHost("h", func(h *hostsv1.Host) { h.DeletionTimestamp = ptr.To(metav1.Now()) }), worker, false},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := suits(tc.host, &scope{machine: tc.machine}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestSelector(t *testing.T) {
	fast := newHost("fast", func(h *hostsv1.Host) { h.Labels = map[string]string{"disk": "nvme"} })
	there := newAPI(t, newHost("a"), newHost("b"), fast, newMachine())
	s := &scope{obj: newMachine(), machine: &clusterv1.Machine{}}
	s.obj.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"disk": "nvme"}}
	if _, err := newController(there).claim(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&hostsv1.HostReference{Name: "fast", Claim: "1"}, s.obj.Spec.Host); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The manager stopped after the Host was released, and before the finalizer was removed. Another HostMachine has the Host now.
func TestReleaseTwice(t *testing.T) {
	there := newAPI(t, newHost("h", claimedBy("other", "2")))
	s := &scope{obj: newMachine(has("h", "1"))}
	if _, err := newController(there).release(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&hostsv1.Claim{Machine: "other", ID: "2"}, read(t, there).Spec.Claim); diff != "" {
		t.Errorf("the Host's claim (-want +got):\n%s", diff)
	}
	if len(s.obj.Finalizers) > 0 {
		t.Error("the HostMachine stays")
	}
}

// A claim whose HostMachine does not know of it is released too, and so is the second of two claims.
func TestReleaseAll(t *testing.T) {
	for _, cached := range []string{"the cache shows the claims", "the cache shows no Hosts"} {
		t.Run(cached, func(t *testing.T) {
			hosts := []client.Object{newHost("h", claimedBy("m", "1")), newHost("i", claimedBy("m", "1")), newHost("j", claimedBy("other", "2"))}
			there := newAPI(t, hosts...)
			if cached == "the cache shows no Hosts" {
				there.Cache.Hide(hosts...)
			}
			c := newController(there)
			s := &scope{obj: newMachine(func(m *hostsv1.HostMachine) { m.Annotations = map[string]string{hostsv1.AbandonAnnotation: ""} })}
			if _, err := c.release(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			list := &hostsv1.HostList{}
			testenv.Must(t, there.List(t.Context(), list))
			got := map[string]hostsv1.HostSpec{}
			for _, host := range list.Items {
				got[host.Name] = host.Spec
			}
			want := map[string]hostsv1.HostSpec{
				"h": {Unschedulable: true}, "i": {Unschedulable: true}, "j": {Claim: &hostsv1.Claim{Machine: "other", ID: "2"}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("abandoned Hosts are released and unschedulable (-want +got):\n%s", diff)
			}
			if len(s.obj.Finalizers) > 0 {
				t.Error("the HostMachine stays")
			}
		})
	}
}

// The cache shows a claim that was released, and another HostMachine's by now.
func TestReleaseOldClaim(t *testing.T) {
	there := newAPI(t, newHost("h", claimedBy("other", "2")))
	cached := newHost("h", claimedBy("m", "1"))
	cached.ResourceVersion = "1"
	s := &scope{obj: newMachine(has("h", "1"), func(m *hostsv1.HostMachine) { m.Annotations = map[string]string{hostsv1.AbandonAnnotation: ""} })}
	there.Cache.Show(cached)
	if _, err := newController(there).release(t.Context(), s); err == nil || !step.IsStale(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if diff := cmp.Diff(&hostsv1.Claim{Machine: "other", ID: "2"}, read(t, there).Spec.Claim); diff != "" {
		t.Errorf("the Host's claim (-want +got):\n%s", diff)
	}
}

// A Host without finalizer could be deleted with what runs on it.
func TestFinalizerReturns(t *testing.T) {
	host := newHost("h", claimedBy("m", "1"))
	host.Finalizers = nil
	there := newAPI(t, host)
	if _, err := newController(there).claim(t.Context(), &scope{obj: newMachine(has("h", "1"))}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{hostsv1.HostFinalizer}, read(t, there).Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

func TestResetting(t *testing.T) {
	failed := "Host h: the reset command failed, see reset.log in /var/lib/cluster-api-hosts there"
	type told struct{ Reason, Message string }
	obj := newMachine()
	for _, tc := range []struct {
		reason, answer string
		want           told
	}{
		{"the command runs", "running", told{hostsv1.ResettingReason, "Waiting for the reset command to run on Host h"}},
		{"it failed", "failed", told{hostsv1.ResetFailedReason, failed}},
		{"it runs again: the failure stays in the condition", "running", told{hostsv1.ResetFailedReason, failed}},
	} {
		released := step.Do("release", func(context.Context, *scope) (step.Result, error) {
			return resetting(obj, newHost("h"), tc.answer), nil
		}).
			Sets(hostsv1.HostReleasedCondition)
		result, err := steptest.Run(t.Context(), obj, &scope{}, released)
		if err != nil {
			t.Fatal(err)
		}
		got := condition.Get(obj, hostsv1.HostReleasedCondition)
		if diff := cmp.Diff(tc.want, told{got.Reason, got.Message}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
		if !result.Ends() || result.After() == 0 {
			t.Errorf("%s: nothing reads the state again", tc.reason)
		}
	}
}

func TestAnswers(t *testing.T) {
	for answer, want := range map[string]bool{
		"running": true, "ended 0": true, "ended 137": true, "interrupted": true, "state lost": true, "reset": true, "none": true, "conflict": true, "failed": true,
		"busy": false, "": false, "token abcdef": false, "ended 0 token": false, "ended x": false,
	} {
		if got := answers.MatchString(answer); got != want {
			t.Errorf("%q is an answer: %t", answer, got)
		}
	}
}

func TestFail(t *testing.T) {
	tests := []struct{ reason, state, want string }{
		{"the exit status", "ended 3", "the bootstrap data on Host h failed: ended 3, see bootstrap.log in /var/lib/cluster-api-hosts there"},
		{"a reboot", "interrupted", "the bootstrap data on Host h failed: interrupted, see bootstrap.log in /var/lib/cluster-api-hosts there"},
		{"the state was removed by hand", "state lost", "the bootstrap data on Host h failed: state lost, see bootstrap.log in /var/lib/cluster-api-hosts there"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			obj := newMachine()
			s := &scope{obj: obj, host: newHost("h")}
			result := step.Do("bootstrap", func(ctx context.Context, s *scope) (step.Result, error) { return fail(ctx, s, tc.state), nil }).Sets(hostsv1.BootstrappedCondition)
			if _, err := steptest.Run(t.Context(), obj, s, result); err != nil {
				t.Fatal(err)
			}
			if got := condition.Get(obj, hostsv1.BootstrappedCondition); got == nil || got.Message != tc.want || *obj.Status.FailureMessage != tc.want {
				t.Errorf("the condition is %v, the message %q", got, *obj.Status.FailureMessage)
			}
			if strings.Contains(*obj.Status.FailureMessage, "\n") {
				t.Error("the message has several lines")
			}
		})
	}
}
