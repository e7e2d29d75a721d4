package cluster

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// counters counts the Machines of the control plane and of the workers.
func (c *Controller) counters(_ context.Context, s *scope) (step.Result, error) {
	if s.family == nil {
		return step.Done(), nil
	}
	s.Status.Workers = nilIfZero(s.workers(s.Status.Workers))
	if plane, err := s.controlPlaneCounts(s.Status.ControlPlane); err == nil { // Other steps report the error.
		s.Status.ControlPlane = nilIfZero(plane)
	}
	return step.Done(), nil
}

func nilIfZero[T any](v T) *T {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return &v
}

// controlPlaneCounts returns what the control plane object reports, or else counts Machines. The upgrade plan stays.
func (s *scope) controlPlaneCounts(before *clusterv1.ClusterControlPlaneStatus) (clusterv1.ClusterControlPlaneStatus, error) {
	var counts clusterv1.ClusterControlPlaneStatus
	switch {
	case s.plane.Object != nil:
		var err error
		if counts, err = contract.ControlPlaneOf(*s.plane.Object).Counts(); err != nil {
			return counts, err
		}
	case !s.Spec.ControlPlaneRef.IsDefined():
		sum := newSum()
		for _, m := range s.family.machines {
			if isControlPlane(m) {
				sum.add(ofMachine(m))
			}
		}
		counts = clusterv1.ClusterControlPlaneStatus(sum.result())
	}
	if before != nil {
		counts.UpgradePlan = before.UpgradePlan
	}
	counts.Versions = replicas.Bounded(counts.Versions)
	return counts, nil
}

// workers adds up what MachineDeployments, MachinePools, MachineSets and Machines report that no other object manages.
func (s *scope) workers(before *clusterv1.WorkersStatus) clusterv1.WorkersStatus {
	sum := newSum()
	for i := range s.family.deployments {
		md := &s.family.deployments[i]
		sum.add(clusterv1.WorkersStatus{
			DesiredReplicas: md.Spec.Replicas, Replicas: md.Status.Replicas, UpToDateReplicas: md.Status.UpToDateReplicas,
			ReadyReplicas: md.Status.ReadyReplicas, AvailableReplicas: md.Status.AvailableReplicas, Versions: md.Status.Versions,
		})
	}
	for i := range s.family.pools {
		pool := &s.family.pools[i]
		sum.add(clusterv1.WorkersStatus{
			DesiredReplicas: pool.Spec.Replicas, Replicas: pool.Status.Replicas, UpToDateReplicas: pool.Status.UpToDateReplicas,
			ReadyReplicas: pool.Status.ReadyReplicas, AvailableReplicas: pool.Status.AvailableReplicas, Versions: pool.Status.Versions,
		})
	}
	for i := range s.family.sets {
		set := &s.family.sets[i]
		if metav1.GetControllerOf(set) != nil {
			continue
		}
		sum.add(clusterv1.WorkersStatus{
			DesiredReplicas: set.Spec.Replicas, Replicas: set.Status.Replicas, UpToDateReplicas: set.Status.UpToDateReplicas,
			ReadyReplicas: set.Status.ReadyReplicas, AvailableReplicas: set.Status.AvailableReplicas, Versions: set.Status.Versions,
		})
	}
	for _, m := range s.family.machines {
		if !isControlPlane(m) && metav1.GetControllerOf(m) == nil {
			sum.add(ofMachine(m))
		}
	}
	counts := sum.result()
	if before != nil {
		counts.UpgradePlan = before.UpgradePlan
	}
	return counts
}

// ofMachine counts a Machine that no other object manages.
func ofMachine(m *clusterv1.Machine) clusterv1.WorkersStatus {
	one := func(t string) *int32 {
		if report.IsTrue(m, t) {
			return ptr.To[int32](1)
		}
		return ptr.To[int32](0)
	}
	counts := clusterv1.WorkersStatus{
		DesiredReplicas: ptr.To[int32](1), Replicas: ptr.To[int32](1),
		UpToDateReplicas: one(clusterv1.MachineUpToDateCondition), ReadyReplicas: one(clusterv1.ReadyCondition),
		AvailableReplicas: one(clusterv1.AvailableCondition),
	}
	counts.Versions = replicas.VersionsOf([]*clusterv1.Machine{m}).Status()
	return counts
}

// sum adds up counters. One that a part does not report is unknown in the sum.
type sum struct {
	total    clusterv1.WorkersStatus
	parts    int
	versions replicas.Versions
}

func newSum() *sum { return &sum{versions: replicas.Versions{}} }

func (s *sum) add(part clusterv1.WorkersStatus) {
	t := &s.total
	for _, n := range []struct{ total, part **int32 }{
		{&t.DesiredReplicas, &part.DesiredReplicas}, {&t.Replicas, &part.Replicas}, {&t.UpToDateReplicas, &part.UpToDateReplicas},
		{&t.ReadyReplicas, &part.ReadyReplicas}, {&t.AvailableReplicas, &part.AvailableReplicas},
	} {
		switch {
		case s.parts == 0 && *n.part != nil:
			*n.total = ptr.To(**n.part)
		case *n.total == nil || *n.part == nil:
			*n.total = nil
		default:
			*n.total = ptr.To(**n.total + **n.part)
		}
	}
	s.parts++
	for _, v := range part.Versions {
		s.versions[v.Version] += ptr.Deref(v.Replicas, 0)
	}
}

// result returns the sums, and the versions in ascending order.
func (s *sum) result() clusterv1.WorkersStatus {
	s.total.Versions = s.versions.Status()
	return s.total
}
