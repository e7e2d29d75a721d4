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
	"sigs.k8s.io/cluster-api/provider/condition"
)

// machine makes a Machine that runs; what a test adds to that, it does by the changes.
func machine(name, version string, controlPlane bool, changes ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name), Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec:       clusterv1.MachineSpec{Version: &version},
		Status:     clusterv1.MachineStatus{Phase: string(clusterv1.MachinePhaseRunning), NodeRef: &corev1.ObjectReference{Name: name}},
	}
	if controlPlane {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	condition.Set(&m, condition.True(clusterv1.ReadyCondition))
	condition.Set(&m, condition.True(clusterv1.MachineNodeHealthyCondition))
	for _, change := range changes {
		change(&m)
	}
	return m
}

func goes(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func ails(m *clusterv1.Machine) {
	condition.Set(m, condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityError, "NodeNotFound", ""))
}

func starts(m *clusterv1.Machine) { m.Status.NodeRef = nil }

func pictured(machines ...clusterv1.Machine) *Picture {
	return &Picture{Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, Machines: clusterv1.MachineList{Items: machines}}
}

// claiming adds a MachineDeployment that reports so many available replicas of as many.
func (p *Picture) claiming(n int32) *Picture {
	p.Deployments.Items = append(p.Deployments.Items, clusterv1.MachineDeployment{Status: clusterv1.MachineDeploymentStatus{
		Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}})
	return p
}

// controlled adds a KubeadmControlPlane that has so many replicas.
func (p *Picture) controlled(n int32) *Picture {
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
		picture   *Picture
		broken    string // what is said when it is not true
	}{
		{"a new worker waits for the whole control plane", ControlPlaneFirst(newer), pictured(machine("cp", newer, true), cp, machine("w", newer, false)), "only 1 of 2"},
		{"a new worker may be there when the control plane is new", ControlPlaneFirst(newer), pictured(machine("cp", newer, true), worker, machine("w2", newer, false)), ""},
		{"a deleting Machine is not available", AvailableControlPlane(1), pictured(machine("cp", older, true, goes)), "0 control plane Machines"},
		{"a Machine with an ailing Node is not available", AvailableControlPlane(1), pictured(machine("cp", older, true, ails)), "0 control plane Machines"},
		{"a Machine without a Node is not available", AvailableWorkers(1), pictured(machine("w", older, false, starts)).claiming(1), "0 workers"},
		{"workers that are there and not reported are not enough", AvailableWorkers(1), pictured(worker).claiming(0), "report 0"},
		{"workers that are there and reported are available", AvailableWorkers(1), pictured(worker).claiming(1), ""},
		{"too many control plane Machines", AtMost(0, 1), pictured(cp, worker), "at most 0"},
		{"too many workers", AtMost(1, 0), pictured(cp, worker), "at most 0"},
		{"deleting Machines are not too many", AtMost(1, 0), pictured(cp, machine("w", older, false, goes)), ""},
		{"a Machine too many is not what was asked for", Workers(0), pictured(worker).claiming(0), "1 Machines, want 0"},
		{"a Machine that is not ready", Workers(1), pictured(machine("w", older, false, ails)).claiming(1), "NodeHealthy"},
		{"a count that is off", Workers(1), pictured(worker).claiming(2), "status of MachineDeployments"},
		{"workers as asked for", Workers(1), pictured(worker).claiming(1), ""},
		{"a control plane that nobody counts", ControlPlanes(1), pictured(cp), "0 KubeadmControlPlanes"},
		{"a control plane whose count is off", ControlPlanes(1), pictured(cp).controlled(3), "status of KubeadmControlPlane"},
		{"a control plane as asked for", ControlPlanes(1), pictured(cp).controlled(1), ""},
		{"one Machine of another version", Version(older), pictured(cp, machine("w", newer, false)), "1 of 2"},
		{"a replaced Machine is not the same, whatever its name", SameMachines((*Picture).Workers, pictured(worker)),
			pictured(machine("w", older, false, func(m *clusterv1.Machine) { m.UID = "other" })), "UIDs"},
		{"a Machine that stayed is not new", NewMachines((*Picture).Workers, pictured(worker)), pictured(worker), "not replaced"},
		{"a Cluster that is away with its Machines still there", Absent, &Picture{Cluster: &clusterv1.Cluster{}, Machines: pictured(cp).Machines}, "1 objects"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.condition(tc.picture)
			if (err == nil) != (tc.broken == "") || err != nil && !strings.Contains(err.Error(), tc.broken) {
				t.Errorf("said %v, want %q", err, tc.broken)
			}
		})
	}
}

// What is broken for one moment stays reported, however whole it is later.
func TestObserverRemembers(t *testing.T) {
	o := &observer{
		subject:    &Subject{World: &World{Namespace: "ns"}, Name: "c"},
		conditions: []Condition{AvailableControlPlane(1)}, seen: map[string]client.Object{},
	}
	whole, ailing := machine("cp", older, true), machine("cp", older, true, ails)
	elsewhere := machine("elsewhere", older, true, ails)
	elsewhere.Namespace = "other"
	o.see(&whole, false)
	o.begin()
	o.see(&elsewhere, false)
	if o.broken != nil {
		t.Fatalf("nothing is broken yet: %v", o.broken)
	}
	o.see(&ailing, false)
	o.see(&whole, false)
	if o.broken == nil {
		t.Fatal("a control plane that was away for a moment went unseen")
	}
}
