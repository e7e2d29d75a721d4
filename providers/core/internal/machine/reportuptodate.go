package machine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// revision is the MachineSet and the MachineDeployment of a Machine.
type revision struct {
	set        *clusterv1.MachineSet
	deployment *clusterv1.MachineDeployment
}

// family reads the MachineSet and the MachineDeployment of a Machine, once per reconcile; nil for what it has not.
func (c *Controller) family(ctx context.Context, s *scope) (*revision, error) {
	m := s.machine
	owner := metav1.GetControllerOf(m)
	if s.found.revision != nil || owner == nil || owner.Kind != "MachineSet" {
		return s.found.revision, nil
	}
	found := &revision{set: &clusterv1.MachineSet{}}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, found.set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if name := m.Labels[clusterv1.MachineDeploymentNameLabel]; name != "" {
		found.deployment = &clusterv1.MachineDeployment{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, found.deployment); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
	}
	s.found.revision = found
	return found, nil
}

// compare finds what the Machine is compared with.
func (c *Controller) compare(ctx context.Context, s *scope) error {
	found, err := c.family(ctx, s)
	s.found.minReady = seconds(s.machine.Spec.MinReadySeconds) // Set by users, and by other control plane providers.
	if found != nil {
		s.found.minReady = machineset.MinReady(found.set)
	}
	return err
}

// outdated reports whether a rollout is going to replace the Machine: the revision of its MachineSet is older than that of its
// MachineDeployment.
func (r *revision) outdated() bool {
	if r == nil || r.deployment == nil {
		return false
	}
	own, errOwn := strconv.Atoi(r.set.Annotations[clusterv1.RevisionAnnotation])
	newest, errNewest := strconv.Atoi(r.deployment.Annotations[clusterv1.RevisionAnnotation])
	return errOwn == nil && errNewest == nil && own < newest
}

// upToDateReport reports whether a rollout is going to replace the Machine. Of others than those of MachineDeployments, their owner decides
// that, or nothing does.
func (s *scope) upToDateReport() []metav1.Condition {
	found := s.found.revision
	if found == nil || found.deployment == nil {
		return nil
	}
	t := clusterv1.MachineUpToDateCondition
	switch kubelet := olderKubelet(s.machine); {
	case found.outdated():
		return []metav1.Condition{report.False(t, clusterv1.NotUpToDateReason, "%s", differences(found, s.now))}
	case inplace.IsUpdating(s.machine):
		return []metav1.Condition{report.False(t, clusterv1.MachineUpToDateUpdatingReason, "* In-place update in progress")}
	case kubelet != "":
		return []metav1.Condition{report.False(t, clusterv1.MachineUpToDateUpdatingReason,
			"* Node.status.nodeInfo.kubeletVersion %s, %s required", kubelet, s.machine.Spec.Version)}
	}
	return []metav1.Condition{report.True(t, clusterv1.UpToDateReason, "")}
}

// olderKubelet returns the version of a Machine's kubelet if it is older than that of its spec, as during an update in place; "" otherwise.
// What follows the patch version does not count: distributions add their own.
func olderKubelet(m *clusterv1.Machine) string {
	if m.Status.NodeInfo == nil || m.Spec.Version == "" {
		return ""
	}
	kubelet := m.Status.NodeInfo.KubeletVersion
	is, err := semver.ParseTolerant(kubelet)
	wanted, errWanted := semver.ParseTolerant(m.Spec.Version)
	if err != nil || errWanted != nil || is.FinalizeVersion() == wanted.FinalizeVersion() {
		return ""
	}
	is.Pre, wanted.Pre = nil, nil
	if is.LT(wanted) {
		return kubelet
	}
	return ""
}

// differences lists why a MachineSet is not the current one of its MachineDeployment.
func differences(r *revision, now time.Time) string {
	is, wanted := &r.set.Spec.Template.Spec, &r.deployment.Spec.Template.Spec
	var lines []string
	if a, b := is.Version, wanted.Version; a != b {
		lines = append(lines, fmt.Sprintf("* Version %s, %s required", a, b))
	}
	if a, b := is.FailureDomain, wanted.FailureDomain; a != b {
		lines = append(lines, fmt.Sprintf("* Failure domain %s, %s required", a, b))
	}
	for _, refs := range [][2]clusterv1.ContractVersionedObjectReference{
		{is.Bootstrap.ConfigRef, wanted.Bootstrap.ConfigRef}, {is.InfrastructureRef, wanted.InfrastructureRef},
	} {
		if a, b := refs[0], refs[1]; b.IsDefined() && a != b {
			lines = append(lines, fmt.Sprintf("* %s is not up-to-date", strings.TrimSuffix(b.Kind, "Template")))
		}
	}
	if after := &r.deployment.Spec.Rollout.After; !after.IsZero() && !after.After(now) && r.set.CreationTimestamp.Before(after) {
		lines = append(lines, "* MachineDeployment spec.rolloutAfter expired")
	}
	if len(lines) == 0 {
		lines = append(lines, "* MachineDeployment spec.template has changed")
	}
	return strings.Join(lines, "\n")
}
