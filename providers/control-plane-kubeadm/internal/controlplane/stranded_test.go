package controlplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestStranded(t *testing.T) {
	alive := kcptest.NewWorkload(client.ObjectKey{Namespace: "ns", Name: "c"})
	alive.Boot("foreign")
	unresponsive := kcptest.NewWorkload(alive.Key)
	unresponsive.Boot("gone")
	unresponsive.Unresponsive = errors.New("timeout")
	external := bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{CAFile: "ca"}}}
	remembered := func(b *bench) {
		b.KCP.Status.Initialization.ControlPlaneInitialized = nil
		condition.Set(b.Cluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
	}
	nothing := func(*bench) {}
	for _, test := range []struct {
		reason  string
		given   func(*bench)
		cluster connection.Workloads
		after   time.Duration
		kind    scale.Kind
		blocked bool
		again   time.Duration
		says    string
	}{
		{"the first Machine of a new cluster is created", func(b *bench) { b.KCP.Status.Initialization.ControlPlaneInitialized = nil }, unreachable{}, 0, scale.Initialize, false, 0, ""},
		{"an API server responds, so a Machine can join", nothing, workloads{alive}, 0, scale.ScaleUp, false, 0, ""},
		{"the connection is not broken yet", nothing, workloads{unresponsive}, 0, scale.ScaleUp, true, strandedRetry, "no API server responds at h:1"},
		{"a manager that has just started is not connected yet", nothing, unreachable{}, 0, scale.ScaleUp, true, connection.UnreachableAfter, ""},
		{"nothing is left", nothing, unreachable{}, connection.UnreachableAfter, scale.ScaleUp, true, connection.DefaultGrace - connection.UnreachableAfter, "The data of its etcd is lost unless there is a backup"},
		{"the condition of the Cluster is the only sign that it is initialized", remembered, unreachable{}, connection.UnreachableAfter, scale.ScaleUp, true, connection.DefaultGrace - connection.UnreachableAfter, "delete Cluster ns/c and create it again"},
		{
			"the data in an external etcd is not lost", func(b *bench) { b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration = external },
			unreachable{}, connection.UnreachableAfter, scale.ScaleUp, true, connection.DefaultGrace - connection.UnreachableAfter, "The data in its external etcd is not affected",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t)
			b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			test.given(b)
			b.Workloads = test.cluster
			if _, err := b.take(t.Context(), "connect"); err != nil {
				t.Fatal(err)
			}
			b.API.Clock.SetTime(object.Now().Add(test.after))
			result, err := b.take(t.Context(), "connect", "stranded", "inspect")
			if err != nil || result.After() != test.again {
				t.Errorf("again in %s, error %v, want %s", result.After(), err, test.again)
			}
			action := b.next()
			if action.Kind != test.kind || (len(action.Blocked) > 0) != test.blocked {
				t.Errorf("the plan is %+v, want %s, blocked %t", action, test.kind, test.blocked)
			}
			stated := condition.Get(b.KCP, controlplanev1.MachinesCreatedV1Beta1Condition)
			if test.says == "" {
				if stated != nil {
					t.Errorf("unexpected condition %+v", stated)
				}
				return
			}
			if stated == nil || stated.Status != corev1.ConditionFalse || stated.Severity != clusterv1.ConditionSeverityError || !strings.Contains(stated.Message, test.says) {
				t.Errorf("condition %+v, want a message with %q", stated, test.says)
			}
		})
	}
}

// There is one event, and a condition as long as it lasts.
func TestStrandedIsAnnouncedOnce(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	kcp.Namespace, kcp.Name, kcp.UID = "ns", "cp", "cp-uid"
	kcp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	b := newBench(t, kcp)
	declared := b.declared()
	declared.Paused = nil
	declared.Scope = func(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
		b.KCP, b.s.connection.Lost = kcp, true
		b.s.ControlPlane = b.ControlPlane
		return b.s, nil
	}
	declared.Steps, declared.Report = []step.Step[*scope]{declared.Step("stranded")}, nil
	runner := declared.Runner(step.Clients{Client: b.Client, Live: b.API, Recorder: b.Recorder, Clock: b.Clock})
	for range 3 {
		if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cp"}}); err != nil {
			t.Fatal(err)
		}
	}
	events := b.API.Events()
	if len(events) != 1 {
		t.Fatalf("there were %d events, want 1", len(events))
	}
	if event := events[0]; !strings.HasPrefix(event, "Warning FailedScaleUp All Machines of the control plane are gone and no API server responds at h:1") {
		t.Errorf("the event is %q", event)
	}
}

// A stale cache without Machines must not lead to another cluster.
func TestOnlyTheFirstMachineInitializes(t *testing.T) {
	for _, test := range []struct {
		reason  string
		live    *clusterv1.Machine
		created bool
	}{
		{"a Machine of this control plane", machineOf("cp-uid"), false},
		{"a Machine that it would adopt", machineOf(""), false},
		{"a Machine of another control plane", machineOf("other"), true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t, test.live)
			result, err := b.take(t.Context(), "plan", "scale")
			// The bench cannot create one because there is no template.
			if tried := err != nil && strings.Contains(err.Error(), "infrastructure template"); tried != test.created {
				t.Errorf("it tried to create a Machine: %t, error %v, want %t", tried, err, test.created)
			}
			if !test.created && !result.Ends() {
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
		m.OwnerReferences = append(m.OwnerReferences, *(&snapshot.ControlPlane{KCP: kcp}).Owner())
	}
	return m
}
