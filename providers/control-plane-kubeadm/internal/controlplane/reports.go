package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a control plane. There are none before the infrastructure of its Cluster is ready.
func (c *Controller) reports(s *scope) []metav1.Condition {
	if !s.isReported() && s.KCP.DeletionTimestamp == nil {
		return nil
	}
	now := c.Clock.Now()
	machines := s.all()
	desired := int32(s.Desired())
	size := replicas.Scale{
		Current: len(machines), Desired: &desired, Deleting: s.KCP.DeletionTimestamp != nil, Stale: replicas.Stale(machines, now),
	}
	up, down := size, size
	for _, f := range s.action.Blocked {
		if s.action.Kind == scale.ScaleDown {
			down.Blocked = append(down.Blocked, f.String())
		} else {
			up.Blocked = append(up.Blocked, f.String())
		}
	}
	all := []metav1.Condition{
		s.initializedReport(), s.certificatesReport(), s.componentsReport(), s.etcdReport(),
		replicas.MachinesReady(clusterv1.MachinesReadyCondition, machines),
		replicas.MachinesUpToDate(clusterv1.MachinesUpToDateCondition, machines, now),
		s.rollingOutReport(machines), up.Up(), down.Down(),
		replicas.Remediating("KubeadmControlPlane", machines), s.deletingReport(),
	}
	return append(all, s.availableReport(all))
}

// rollingOutReport adds to the usual condition why no Machine is replaced, if only users can change that: with as many Machines as desired,
// no other condition reports it. So does an operation that holds the control plane, even if there is nothing to do.
func (s *scope) rollingOutReport(machines []*clusterv1.Machine) metav1.Condition {
	c := replicas.RollingOut(machines)
	if why := s.action.OldEtcd(); why != "" && c.Status == metav1.ConditionTrue {
		c.Message += "\n* " + why
	}
	if s.isHeld() {
		c.Message = strings.TrimPrefix(c.Message+"\n* "+s.heldBy, "\n")
	}
	return c
}

// all returns the Machines without what was read for them.
func (s *scope) all() []*clusterv1.Machine {
	machines := make([]*clusterv1.Machine, 0, len(s.Machines))
	for _, m := range s.Machines {
		machines = append(machines, m.Machine)
	}
	return machines
}

// isReported reports whether there is something to report.
func (s *scope) isReported() bool {
	return s.Cluster != nil && (ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) || len(s.Machines) > 0)
}

func (s *scope) initializedReport() metav1.Condition {
	initialized := ptr.Deref(s.KCP.Status.Initialization.ControlPlaneInitialized, false)
	return report.If(controlplanev1.KubeadmControlPlaneInitializedCondition, initialized,
		controlplanev1.KubeadmControlPlaneInitializedReason, controlplanev1.KubeadmControlPlaneNotInitializedReason)
}

func (s *scope) certificatesReport() metav1.Condition {
	t := controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition
	switch c := condition.Get(s.KCP, controlplanev1.CertificatesAvailableV1Beta1Condition); {
	case c == nil:
		return report.Unknown(t, clusterv1.NotYetReportedReason, "Condition %s not yet reported", t)
	case c.Status == corev1.ConditionTrue:
		return report.True(t, clusterv1.AvailableReason, "")
	default:
		return report.False(t, clusterv1.NotAvailableReason, "%s", cmp.Or(c.Message, c.Reason))
	}
}

// componentsReport aggregates the conditions of the components of all Machines.
func (s *scope) componentsReport() metav1.Condition {
	types := make([]string, 0, 4)
	for _, c := range health.Components(s.StackedEtcd()) {
		types = append(types, string(c.Condition))
	}
	nodes, _ := unclaimed(s)
	return s.healthReport(controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, types, nodes, "control plane")
}

// etcdReport aggregates the conditions of the etcd members.
func (s *scope) etcdReport() metav1.Condition {
	t := controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition
	if !s.StackedEtcd() {
		return report.None(t)
	}
	_, members := unclaimed(s)
	return s.healthReport(t, []string{string(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)}, members, "etcd")
}

// healthReport aggregates conditions of the Machines, and what is wrong with the whole control plane.
func (s *scope) healthReport(t string, types, errors []string, what string) metav1.Condition {
	switch {
	case !s.Initialized():
		return report.Unknown(t, clusterv1.InspectionFailedReason, "Waiting for Cluster control plane to be initialized")
	case s.connection.Down:
		return report.Unknown(t, clusterv1.ConnectionDownReason, "Remote connection down")
	}
	reasons := report.Reasons{
		True: controlplanev1.KubeadmControlPlaneHealthyReason, False: controlplanev1.KubeadmControlPlaneNotHealthyReason,
		Unknown: controlplanev1.KubeadmControlPlaneHealthUnknownReason,
	}
	var children []report.Child
	for _, m := range s.Machines {
		var sources []report.Source
		for _, one := range types {
			if c := report.Get(m, one); c != nil {
				sources = append(sources, report.Source{Condition: *c})
			}
		}
		if len(sources) > 0 {
			of := report.Summary(t, reasons, together(sources)...)
			children = append(children, report.Child{Kind: clusterv1.MachineKind, Name: m.Name, Source: report.Source{Condition: of}})
		}
	}
	if len(children) == 0 && len(errors) == 0 {
		return report.Unknown(t, reasons.Unknown, "No Machines reporting %s status", what)
	}
	c := report.Aggregate(t, reasons, false, children)
	if len(errors) == 0 {
		return c
	}
	lines := []string{}
	if c.Message != "" {
		lines = append(lines, c.Message)
	}
	for _, e := range errors[:min(len(errors), maxSubjects)] {
		lines = append(lines, "* "+e)
	}
	return report.False(t, reasons.False, "%s", strings.Join(lines, "\n"))
}

// together replaces the conditions of the components by one if the same is said about all of them.
func together(sources []report.Source) []report.Source {
	first := sources[0]
	same := !slices.ContainsFunc(sources, func(s report.Source) bool { return s.Status != first.Status || s.Message != first.Message })
	if len(sources) < 2 || !same || first.Message == "" {
		return sources
	}
	first.Type = "Control plane components"
	return []report.Source{first}
}

func (s *scope) deletingReport() metav1.Condition {
	t := clusterv1.DeletingCondition
	switch {
	case s.KCP.DeletionTimestamp == nil:
		return report.False(t, clusterv1.NotDeletingReason, "")
	case s.hasWorkers():
		return report.True(t, controlplanev1.KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason,
			"KubeadmControlPlane deletion blocked because %d worker Machines or MachinePools still exist", s.workers)
	case len(s.Machines) > 0:
		return report.True(t, controlplanev1.KubeadmControlPlaneDeletingWaitingForMachineDeletionReason,
			"Deleting %s", strings.Join(replicas.Machines(len(s.Machines)), ""))
	}
	return report.True(t, clusterv1.DeletionCompletedReason, "Deletion completed")
}

// availableReport reports whether the control plane serves: it has a quorum of healthy etcd members, a Machine with healthy components, and
// certificates.
func (s *scope) availableReport(now []metav1.Condition) metav1.Condition {
	t := clusterv1.AvailableCondition
	if !ptr.Deref(s.KCP.Status.Initialization.ControlPlaneInitialized, false) {
		return report.False(t, clusterv1.NotAvailableReason, "Control plane not yet initialized")
	}
	var lines []string
	if s.KCP.DeletionTimestamp != nil {
		lines = append(lines, "* Control plane metadata.deletionTimestamp is set")
	}
	certificates := report.Find(now, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition)
	if certificates.Status != metav1.ConditionTrue {
		lines = append(lines, "* Control plane certificates are not available")
	}
	if s.connection.Down {
		return report.Unknown(t, clusterv1.ConnectionDownReason, "Remote connection down")
	}
	serving, members := 0, 0
	for _, m := range s.Machines {
		if s.healthy(m, true) {
			serving++
		}
		if s.healthy(m, false) {
			members++
		}
	}
	quorum := len(s.Machines)/2 + 1
	down := len(lines) > 0
	if s.StackedEtcd() && members < len(s.Machines) {
		lines = append(lines, fmt.Sprintf("* %d of %d etcd members are healthy, at least %d healthy member required for etcd quorum",
			members, len(s.Machines), quorum))
		down = down || members < quorum
	}
	if serving < len(s.Machines) {
		lines = append(lines, fmt.Sprintf("* %d of %d Machines have healthy control plane components, at least 1 required",
			serving, len(s.Machines)))
		down = down || serving == 0
	}
	message := strings.Join(lines, "\n")
	if down || len(s.Machines) == 0 {
		return report.False(t, clusterv1.NotAvailableReason, "%s", message)
	}
	return report.True(t, clusterv1.AvailableReason, "%s", message)
}

// healthy reports whether a Machine's etcd member is healthy, and with components all of its components, too.
func (s *scope) healthy(m *snapshot.Machine, components bool) bool {
	if s.StackedEtcd() && !report.IsTrue(m, string(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)) {
		return false
	}
	for _, c := range health.Components(s.StackedEtcd()) {
		if components && !report.IsTrue(m, string(c.Condition)) {
			return false
		}
	}
	return true
}

// upToDateReport reports whether a rollout is going to replace a Machine.
func upToDateReport(m *snapshot.Machine, wanted string) metav1.Condition {
	t := clusterv1.MachineUpToDateCondition
	if m.Updating() {
		return report.False(t, clusterv1.MachineUpToDateUpdatingReason, "* In-place update in progress")
	}
	if len(m.Outdated) == 0 {
		return report.True(t, clusterv1.UpToDateReason, "")
	}
	lines := make([]string, 0, len(m.Outdated))
	for _, reason := range m.Outdated {
		if strings.HasPrefix(reason, "version ") && m.Spec.Version != "" {
			reason = fmt.Sprintf("Version %s, %s required", m.Spec.Version, wanted)
		}
		lines = append(lines, "* "+condition.Brief(reason))
	}
	return report.False(t, clusterv1.NotUpToDateReason, "%s", strings.Join(lines, "\n"))
}
