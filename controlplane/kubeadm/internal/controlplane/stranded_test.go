package controlplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolsrecord "k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

func TestStranded(t *testing.T) {
	alive := newFakeCluster(client.ObjectKey{Namespace: "ns", Name: "c"})
	alive.boot("foreign")
	deaf := newFakeCluster(alive.key)
	deaf.boot("gone")
	deaf.deaf = errors.New("timeout")
	external := &bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: &bootstrapv1.ExternalEtcd{}}}
	remembered := func(b *bench) {
		b.kcp.Status.Initialized = false
		condition.Set(b.cluster, condition.True(clusterv1.ControlPlaneInitializedCondition))
	}
	nothing := func(*bench) {}
	for _, test := range []struct {
		reason  string
		given   func(*bench)
		cluster Workloads
		after   time.Duration
		kind    plan.Kind
		blocked bool
		again   time.Duration
		says    string
	}{
		{"a new cluster gets its first Machine", func(b *bench) { b.kcp.Status.Initialized = false }, unreachableWorkloads{}, 0, plan.Initialise, false, 0, ""},
		{"somebody else serves the API: a Machine can join", nothing, alive, 0, plan.ScaleUp, false, 0, ""},
		{"the connection does not know yet that all is gone", nothing, deaf, 0, plan.ScaleUp, true, strandedRetry, "nothing answers at h:1"},
		{"a manager that has just started is not connected yet", nothing, unreachableWorkloads{}, 0, plan.ScaleUp, true, unreachableAfter, ""},
		{"all is gone", nothing, unreachableWorkloads{}, unreachableAfter, plan.ScaleUp, true, 0, "What was in its etcd is lost unless there is a backup"},
		{"the Cluster remembers that it was brought up", remembered, unreachableWorkloads{}, unreachableAfter, plan.ScaleUp, true, 0, "delete Cluster ns/c and create it anew"},
		{
			"what is in an external etcd is not lost", func(b *bench) { b.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = external },
			unreachableWorkloads{}, unreachableAfter, plan.ScaleUp, true, 0, "What is in its external etcd is not touched",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t)
			b.kcp.Status.Initialized = true
			test.given(b)
			b.Workloads = test.cluster
			if _, err := b.connect(t.Context(), b.scope); err != nil {
				t.Fatal(err)
			}
			b.Clock = testclock.NewFakePassiveClock(now.Add(test.after))
			result, err := b.take(t.Context(), "connect", "stranded", "inspect")
			if err != nil || result.After() != test.again {
				t.Errorf("again in %s, error %v, want %s", result.After(), err, test.again)
			}
			action := plan.Next(b.planned())
			if action.Kind != test.kind || (len(action.Blocked) > 0) != test.blocked {
				t.Errorf("the plan is %+v, want %s, blocked %t", action, test.kind, test.blocked)
			}
			stated := condition.Get(b.kcp, controlplanev1.MachinesCreatedCondition)
			if test.says == "" {
				if stated != nil {
					t.Errorf("it is said that %+v", stated)
				}
				return
			}
			if stated == nil || stated.Status != corev1.ConditionFalse || stated.Severity != clusterv1.ConditionSeverityError || !strings.Contains(stated.Message, test.says) {
				t.Errorf("condition %+v, want a message with %q", stated, test.says)
			}
		})
	}
}

// It is an event once, and a condition for as long as it lasts.
func TestStrandedIsToldOnce(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	kcp.Namespace, kcp.Name, kcp.UID = "ns", "cp", "cp-uid"
	kcp.Status.Initialized = true
	b := newBench(t, kcp)
	events := toolsrecord.NewFakeRecorder(10)
	declared := b.declared()
	declared.Paused = nil
	declared.Scope = func(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
		b.kcp, b.lost = kcp, true
		return b.scope, nil
	}
	declared.Steps, declared.Report = []step.Step[*scope]{declared.Step("stranded")}, nil
	runner := declared.Runner(step.Outside{Client: b.Client, Live: b.Client, Recorder: events, Clock: b.Clock})
	for range 3 {
		if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cp"}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(events.Events) != 1 {
		t.Fatalf("there were %d events, want 1", len(events.Events))
	}
	if told := <-events.Events; !strings.HasPrefix(told, "Warning FailedScaleUp All Machines of the control plane are gone and nothing answers at h:1") {
		t.Errorf("the event is %q", told)
	}
}

// A cache that does not show the Machines yet must not lead to a second cluster.
func TestTheFirstMachineIsTheFirst(t *testing.T) {
	for _, test := range []struct {
		reason string
		there  *clusterv1.Machine
		made   bool
	}{
		{"one of its own", machineOf("cp-uid"), false},
		{"one that it would adopt", machineOf(""), false},
		{"one of another control plane", machineOf("other"), true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t, test.there)
			result, err := b.act(t.Context(), b.scope)
			// What keeps the bench from making one is that there is no template to make it from.
			if tried := err != nil && strings.Contains(err.Error(), "infrastructure template"); tried != test.made {
				t.Errorf("it tried to make a Machine: %t, error %v, want %t", tried, err, test.made)
			}
			if !test.made && !result.Ends() {
				t.Error("it does not wait for the cache")
			}
		})
	}
}

func machineOf(controller types.UID) *clusterv1.Machine {
	m := &clusterv1.Machine{}
	m.Namespace, m.Name = "ns", "m"
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}
	if controller != "" {
		kcp := &controlplanev1.KubeadmControlPlane{}
		kcp.Name, kcp.UID = "kcp", controller
		m.OwnerReferences = append(m.OwnerReferences, *(&scope{kcp: kcp}).owner())
	}
	return m
}
