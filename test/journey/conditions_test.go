package journey

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// machine returns a running Machine with changes.
func machine(name, version string, controlPlane bool, changes ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name), Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec:       clusterv1.MachineSpec{Version: &version},
		Status:     clusterv1.MachineStatus{Phase: string(clusterv1.MachinePhaseRunning), NodeRef: &corev1.ObjectReference{Name: name}},
	}
	if controlPlane {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	SetCondition(&m, TrueCondition(clusterv1.ReadyCondition))
	SetCondition(&m, TrueCondition(clusterv1.MachineNodeHealthyCondition))
	for _, change := range changes {
		change(&m)
	}
	return m
}

func deleted(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func unhealthy(m *clusterv1.Machine) {
	SetCondition(m, FalseCondition(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityError, "NodeNotFound", ""))
}

func withoutNode(m *clusterv1.Machine) { m.Status.NodeRef = nil }

func snapshotOf(machines ...clusterv1.Machine) *Snapshot {
	return &Snapshot{Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, Machines: clusterv1.MachineList{Items: machines}}
}

// withDeployment adds a MachineDeployment that reports n replicas, all available.
func (p *Snapshot) withDeployment(n int32) *Snapshot {
	p.Deployments.Items = append(p.Deployments.Items, clusterv1.MachineDeployment{Status: clusterv1.MachineDeploymentStatus{
		Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}})
	return p
}

// withControlPlane adds a KubeadmControlPlane with n replicas.
func (p *Snapshot) withControlPlane(n int32) *Snapshot {
	p.ControlPlanes.Items = append(p.ControlPlanes.Items, controlplanev1.KubeadmControlPlane{
		Spec: controlplanev1.KubeadmControlPlaneSpec{Version: older},
		Status: controlplanev1.KubeadmControlPlaneStatus{
			Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, Initialized: true, Ready: true, Version: ptr.To(older),
		},
	})
	return p
}

func TestConditions(t *testing.T) {
	cp, worker := machine("cp", older, true), machine("w", older, false)
	for _, tc := range []struct {
		reason    string
		condition Condition
		snapshot  *Snapshot
		violation string // part of the error, if it is not true
	}{
		{"a new worker before the whole control plane", ControlPlaneFirst(newer), snapshotOf(machine("cp", newer, true), cp, machine("w", newer, false)), "only 1 of 2"},
		{"a new worker after the whole control plane", ControlPlaneFirst(newer), snapshotOf(machine("cp", newer, true), worker, machine("w2", newer, false)), ""},
		{"a Machine that is being deleted is not available", AvailableControlPlane(1), snapshotOf(machine("cp", older, true, deleted)), "0 control plane Machines"},
		{"a Machine with an unhealthy Node is not available", AvailableControlPlane(1), snapshotOf(machine("cp", older, true, unhealthy)), "0 control plane Machines"},
		{"a Machine without a Node is not available", AvailableWorkers(1), snapshotOf(machine("w", older, false, withoutNode)).withDeployment(1), "0 workers"},
		{"workers that are not reported are not available", AvailableWorkers(1), snapshotOf(worker).withDeployment(0), "report 0"},
		{"workers that are reported are available", AvailableWorkers(1), snapshotOf(worker).withDeployment(1), ""},
		{"too many control plane Machines", AtMost(0, 1), snapshotOf(cp, worker), "at most 0"},
		{"too many workers", AtMost(1, 0), snapshotOf(cp, worker), "at most 0"},
		{"Machines that are being deleted do not count", AtMost(1, 0), snapshotOf(cp, machine("w", older, false, deleted)), ""},
		{"one Machine too many", Workers(0), snapshotOf(worker).withDeployment(0), "1 Machines, want 0"},
		{"a Machine that is not ready", Workers(1), snapshotOf(machine("w", older, false, unhealthy)).withDeployment(1), "NodeHealthy"},
		{"wrong counters of a MachineDeployment", Workers(1), snapshotOf(worker).withDeployment(2), "status of MachineDeployments"},
		{"the right number of workers", Workers(1), snapshotOf(worker).withDeployment(1), ""},
		{"a control plane Machine without a KubeadmControlPlane", ControlPlanes(1), snapshotOf(cp), "0 KubeadmControlPlanes"},
		{"wrong counters of a KubeadmControlPlane", ControlPlanes(1), snapshotOf(cp).withControlPlane(3), "status of KubeadmControlPlane"},
		{"the right number of control plane Machines", ControlPlanes(1), snapshotOf(cp).withControlPlane(1), ""},
		{"one Machine of another version", Version(older), snapshotOf(cp, machine("w", newer, false)), "1 of 2"},
		{"a replaced Machine with the same name", SameMachines((*Snapshot).Workers, snapshotOf(worker)),
			snapshotOf(machine("w", older, false, func(m *clusterv1.Machine) { m.UID = "other" })), "UIDs"},
		{"a Machine that was not replaced", NewMachines((*Snapshot).Workers, snapshotOf(worker)), snapshotOf(worker), "not replaced"},
		{"a deleted Cluster whose Machines exist", Absent, &Snapshot{Cluster: &clusterv1.Cluster{}, Machines: snapshotOf(cp).Machines}, "1 objects"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.condition(tc.snapshot)
			if (err == nil) != (tc.violation == "") || err != nil && !strings.Contains(err.Error(), tc.violation) {
				t.Errorf("error %v, want %q", err, tc.violation)
			}
		})
	}
}

// TestObserverKeepsViolation checks that a violation is reported even if it was temporary.
func TestObserverKeepsViolation(t *testing.T) {
	o := &observer{
		subject:    &Subject{World: &World{Namespace: "ns"}, Name: "c"},
		conditions: []Condition{AvailableControlPlane(1)}, seen: map[string]client.Object{},
	}
	good, bad := machine("cp", older, true), machine("cp", older, true, unhealthy)
	elsewhere := machine("elsewhere", older, true, unhealthy)
	elsewhere.Namespace = "other"
	o.see(&good, false)
	o.begin()
	o.see(&elsewhere, false)
	if o.violation != nil {
		t.Fatalf("an object in another namespace is a violation: %v", o.violation)
	}
	o.see(&bad, false)
	o.see(&good, false)
	if o.violation == nil {
		t.Fatal("a temporary violation is not reported")
	}
}
