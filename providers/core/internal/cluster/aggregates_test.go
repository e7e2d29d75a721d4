package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func stating(conditions ...metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.SetConditions(conditions) }
}

// ofOwner makes another object the controller of a Machine.
func ofOwner(m *clusterv1.Machine) {
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", Controller: ptr.To(true)}}
}

func asOld(age time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-age)) }
}

func TestOfMachines(t *testing.T) {
	good := stating(report.True("Ready", "Ready", ""), report.True("UpToDate", "UpToDate", ""))
	s := scopeOf()
	s.family.machines = []*clusterv1.Machine{
		build.Machine("cp", ofOwner, good, func(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }),
		build.Machine("young", ofOwner, asOld(9*time.Second), stating(report.True("Ready", "Ready", ""))),
		build.Machine("old", ofOwner, asOld(10*time.Second), good),
		build.Machine("alone", asOld(time.Hour), stating(report.False("Ready", "NotReady", "* NodeHealthy: no Node"))),
		build.Machine("missed", ofOwner, asOld(time.Hour), good, stating(report.True("Ready", "Ready", ""))),
	}
	want := []metav1.Condition{
		report.True("ControlPlaneMachinesReady", "Ready", ""), report.True("ControlPlaneMachinesUpToDate", "UpToDate", ""),
		report.False("WorkerMachinesReady", "NotReady", "* Machine alone:\n  * NodeHealthy: no Node"),
		report.Unknown("WorkerMachinesUpToDate", "UpToDateUnknown", "* Machine missed: Condition UpToDate not yet reported"),
	}
	if diff := cmp.Diff(want, s.ofMachines()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRemediating(t *testing.T) {
	unhealthy := report.False("HealthCheckSucceeded", "UnhealthyNode", "Node is gone")
	remediated := report.False("OwnerRemediated", "WaitingForRemediation", "waiting")
	controlPlane := func(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }
	for _, tt := range []struct {
		reason   string
		machines []*clusterv1.Machine
		want     metav1.Condition
	}{
		{"all are healthy", []*clusterv1.Machine{build.Machine("a")}, report.False("Remediating", "NotRemediating", "")},
		{"one is remediated", []*clusterv1.Machine{build.Machine("a", stating(unhealthy, remediated)), build.Machine("b", stating(unhealthy))},
			report.True("Remediating", "Remediating", "* Machine a: waiting")},
		{"none is remediated", []*clusterv1.Machine{build.Machine("b", stating(unhealthy)), build.Machine("a", stating(unhealthy)),
			build.Machine("c", controlPlane, stating(unhealthy))},
			report.False("Remediating", "NotRemediating", "Machine c is not healthy (not to be remediated by GenericCluster)\n"+
				"Machines a, b are not healthy (not to be remediated)")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(withPlane)
			s.plane, s.family.machines = existing(nil), tt.machines
			if diff := cmp.Diff(tt.want, s.remediating()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestScaling(t *testing.T) {
	s := scopeOf(withPlane)
	alone, controlled := build.MachineSet("alone"), build.MachineSet("controlled")
	alone.SetConditions([]metav1.Condition{report.True("ScalingUp", "ScalingUp", "Scaling up from 0 to 1 replicas")})
	controlled.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", Controller: ptr.To(true)}}
	s.family.sets = []clusterv1.MachineSet{*alone, *controlled}
	s.plane = existing(reading([]any{map[string]any{"type": "ScalingDown", "status": "True", "reason": "ScalingDown", "message": "3 to 1"}}))
	alone.SetConditions(append(alone.GetConditions(), report.False("ScalingDown", "NotScalingDown", "")))
	s.family.sets[0] = *alone
	want := []metav1.Condition{
		report.True("ScalingUp", "ScalingUp", "* MachineSet alone: Scaling up from 0 to 1 replicas"),
		report.True("ScalingDown", "ScalingDown", "* GenericCluster c-infra: 3 to 1"), report.False("RollingOut", "NotRollingOut", ""),
	}
	if diff := cmp.Diff(want, []metav1.Condition{s.scalingUp(), s.scalingDown(), s.rollingOut()}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeletingReport(t *testing.T) {
	var workers []*clusterv1.Machine
	for i := range 7 {
		workers = append(workers, build.Machine(fmt.Sprintf("w%d", i)))
	}
	present := reference.FoundOf(contract.Object{Unstructured: infraCluster(nil)}, true, nil)
	for _, tt := range []struct {
		reason string
		scope  func(s *scope)
		want   metav1.Condition
	}{
		{"it is not deleted", func(s *scope) { s.DeletionTimestamp = nil }, report.False("Deleting", "NotDeleting", "")},
		{"extensions hold it", func(s *scope) { s.isHeld = true },
			report.True("Deleting", "WaitingForBeforeDeleteHook", "Waiting for runtime extensions to allow the deletion")},
		{"workers are left", func(s *scope) {
			s.family.sets = []clusterv1.MachineSet{*build.MachineSet("s")}
			s.family.machines, s.plane = workers, present
		}, report.True("Deleting", "WaitingForWorkersDeletion", "* MachineSets: s\n* Worker Machines: w0, w1, w2, w3, w4, ... (2 more)")},
		{"Machines of a control plane object wait for it", func(s *scope) {
			s.family.machines, s.plane, s.infrastructure = []*clusterv1.Machine{controlPlaneMachine("cp")}, present, present
		}, report.True("Deleting", "WaitingForControlPlaneDeletion", "* GenericControlPlane: c-plane")},
		{"others do not", func(s *scope) {
			s.Spec.ControlPlaneRef, s.family.machines = clusterv1.ContractVersionedObjectReference{}, []*clusterv1.Machine{controlPlaneMachine("cp")}
		}, report.True("Deleting", "WaitingForWorkersDeletion", "* Control plane Machines: cp")},
		{"the infrastructure is left", func(s *scope) { s.infrastructure = present },
			report.True("Deleting", "WaitingForInfrastructureDeletion", "* GenericCluster: c-infra")},
		{"nothing is left", func(*scope) {}, report.True("Deleting", "DeletionCompleted", "Deletion completed")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			s := scopeOf(withInfra, withPlane, deleting)
			tt.scope(s)
			if diff := cmp.Diff(tt.want, s.deletingReport()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	n := ptr.To[int32]
	deployment := build.MachineDeployment("d")
	deployment.Spec.Replicas, deployment.Status.Replicas = n(3), n(2)
	deployment.Status.Versions = []clusterv1.StatusVersion{{Version: "v1.10.0", Replicas: n(2)}}
	deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas, deployment.Status.UpToDateReplicas = n(1), n(1), n(2)
	alone := build.Machine("alone", stating(report.True("Ready", "Ready", "")), func(m *clusterv1.Machine) { m.Spec.Version = "v1.9.0" })
	s := scopeOf()
	s.family.deployments, s.family.machines = []clusterv1.MachineDeployment{*deployment}, []*clusterv1.Machine{alone, controlPlaneMachine("cp"), build.Machine("owned", ofOwner)}
	s.Status.Workers = &clusterv1.WorkersStatus{UpgradePlan: []clusterv1.UpgradePlanVersion{{Version: "v1.11.0"}}}
	count := func() clusterv1.ClusterStatus {
		_, err := (&Controller{}).counters(t.Context(), s)
		testenv.Must(t, err)
		return s.Status
	}
	want := clusterv1.ClusterStatus{
		ControlPlane: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: n(1), Replicas: n(1), UpToDateReplicas: n(0), ReadyReplicas: n(0), AvailableReplicas: n(0)},
		Workers: &clusterv1.WorkersStatus{
			DesiredReplicas: n(4), Replicas: n(3), UpToDateReplicas: n(2), ReadyReplicas: n(2), AvailableReplicas: n(1),
			Versions:    []clusterv1.StatusVersion{{Version: "v1.9.0", Replicas: n(1)}, {Version: "v1.10.0", Replicas: n(2)}},
			UpgradePlan: []clusterv1.UpgradePlanVersion{{Version: "v1.11.0"}},
		},
	}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.family.deployments[0].Status = clusterv1.MachineDeploymentStatus{}
	want.Workers.Replicas, want.Workers.UpToDateReplicas, want.Workers.ReadyReplicas, want.Workers.AvailableReplicas = nil, nil, nil, nil
	want.Workers.Versions = want.Workers.Versions[:1]
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Errorf("a part that reports nothing makes the sum unknown, -want +got:\n%s", diff)
	}
}
