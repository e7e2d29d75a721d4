package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/preflight"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// creation is what preflight checks of new Machines depend on.
type creation struct {
	set     *clusterv1.MachineSet
	cluster *clusterv1.Cluster
	plane   contract.ControlPlane
	// version is the version of the control plane.
	version semver.Version
}

// preflightChecks returns the checks to pass before Machines are created, in the order in which failures are reported.
func preflightChecks() []preflight.Check[creation] {
	return []preflight.Check[creation]{
		{Name: string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable), Run: controlPlaneIsStable},
		{Name: string(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew), Run: kubernetesVersionSkew},
		{Name: string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew), Run: kubeadmVersionSkew},
		{Name: string(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew), Run: controlPlaneVersionSkew},
	}
}

// Checks are the names of the preflight checks to run. Empty, or All: all of them.
type Checks []string

// Validate returns an error for names of checks that do not exist.
func (c Checks) Validate() error {
	known := []string{string(clusterv1.MachineSetPreflightCheckAll)}
	for _, check := range preflightChecks() {
		known = append(known, check.Name)
	}
	for _, name := range c {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown preflight check %q: must be one of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (c Checks) runs(name string) bool {
	return len(c) == 0 || slices.Contains(c, name) || slices.Contains(c, string(clusterv1.MachineSetPreflightCheckAll))
}

// preflightFailure returns why Machines must not be created now; empty if all checks passed. Without a control plane object that
// has a version, it checks nothing.
func (c *Controller) preflightFailure(ctx context.Context, s *scope) (string, error) {
	if !c.preflight || !s.cluster.Spec.ControlPlaneRef.IsDefined() || skips(s.set, clusterv1.MachineSetPreflightCheckAll) {
		return "", nil
	}
	obj, err := c.external.Object(ctx, &s.cluster.Spec.ControlPlaneRef, s.cluster.Namespace)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return "the control plane object does not exist yet", nil
		}
		return "", err
	}
	plane := contract.ControlPlaneOf(obj)
	spec, err := plane.Version()
	if err != nil || spec == nil {
		return "", err
	}
	version, err := semver.ParseTolerant(*spec)
	if err != nil {
		return "", fmt.Errorf("parsing version %q of the control plane: %w", *spec, err)
	}
	checks := slices.DeleteFunc(preflightChecks(), func(check preflight.Check[creation]) bool {
		return !c.checks.runs(check.Name) || skips(s.set, clusterv1.MachineSetPreflightCheck(check.Name))
	})
	failures := preflight.All(checks, creation{set: s.set, cluster: s.cluster, plane: plane, version: version})
	if len(failures) == 0 {
		return "", nil
	}
	template, err := c.bootstrapTemplate(ctx, s.set)
	if err != nil || skips(template, clusterv1.MachineSetPreflightCheckAll) {
		return "", err
	}
	var reasons []string
	for _, failure := range failures {
		switch {
		case skips(template, clusterv1.MachineSetPreflightCheck(failure.Check)):
		case failure.Err != nil:
			return "", failure.Err
		default:
			reasons = append(reasons, failure.Check+": "+failure.Reason)
		}
	}
	return strings.Join(reasons, "; "), nil
}

// bootstrapTemplate returns the bootstrap template of a set, without annotations if there is none: it may skip checks, too, for all sets
// that use it.
func (c *Controller) bootstrapTemplate(ctx context.Context, set *clusterv1.MachineSet) (*unstructured.Unstructured, error) {
	ref := &set.Spec.Template.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return &unstructured.Unstructured{}, nil
	}
	template, err := c.external.Get(ctx, ref, set.Namespace)
	if apierrors.IsNotFound(err) {
		return &unstructured.Unstructured{}, nil
	}
	return template, err
}

func skips(obj metav1.Object, name clusterv1.MachineSetPreflightCheck) bool {
	for skipped := range strings.SplitSeq(obj.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation], ",") {
		if strings.TrimSpace(skipped) == string(name) {
			return true
		}
	}
	return false
}

func controlPlaneIsStable(c creation) []preflight.Failure {
	if provisioning, err := c.plane.IsProvisioning(); err != nil || provisioning {
		return when(provisioning, "the control plane is being provisioned", err)
	}
	if upgrading, err := c.plane.IsUpgrading(); err != nil || upgrading {
		return when(upgrading, "the control plane is being upgraded", err)
	}
	next, pending := c.pendingUpgrade()
	return when(pending, "the control plane is going to be upgraded to v"+next.String(), nil)
}

// pendingUpgrade returns the version that the topology is going to give the control plane. While a lifecycle hook blocks the upgrade, which
// may last for days, it is not pending: Machines that fail must be replaced. Of an upgrade by several steps, the present step counts.
func (c creation) pendingUpgrade() (next semver.Version, pending bool) {
	topology := c.cluster.Spec.Topology
	if !topology.IsDefined() || topologyReason(c.cluster) == clusterv1.TopologyReconciledHookBlockingV1Beta1Reason {
		return next, false
	}
	version := topology.Version
	if step := c.cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]; step != "" {
		version = step
	}
	next, err := semver.ParseTolerant(version)
	return next, err == nil && !next.EQ(c.version)
}

// topologyReason returns the reason of condition TopologyReconciled.
func topologyReason(cluster *clusterv1.Cluster) string {
	if c := condition.Get(cluster, clusterv1.TopologyReconciledV1Beta1Condition); c != nil {
		return c.Reason
	}
	return ""
}

// isPinned reports whether the Machines belong to a group that has a version of its own in the topology: it stays below that of the control
// plane for as long as users want.
func (c creation) isPinned() bool {
	name := c.set.Spec.Template.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	return slices.ContainsFunc(c.cluster.Spec.Topology.Workers.MachineDeployments, func(md clusterv1.MachineDeploymentTopology) bool {
		return md.Name == name && md.Version != ""
	})
}

// controlPlaneVersionSkew checks that Machines of a topology would not be replaced soon, because their version is not that of the control
// plane. Where a user defers the upgrade of MachineDeployments or pins their version, they stay.
func controlPlaneVersionSkew(c creation) []preflight.Failure {
	own, ok, err := versionOf(c.set)
	reported := report.Get(c.cluster, clusterv1.ClusterTopologyReconciledCondition)
	deferred := reported != nil && reported.Reason == clusterv1.ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason
	if err != nil || !ok || !c.cluster.Spec.Topology.IsDefined() || deferred || c.isPinned() {
		return when(false, "", err)
	}
	return when(!own.EQ(c.version), fmt.Sprintf("version v%s is not yet that of the control plane, v%s", own, c.version), nil)
}

// when returns a failure if a check failed or could not be made.
func when(failed bool, reason string, err error) []preflight.Failure {
	switch {
	case err != nil:
		return []preflight.Failure{{Err: err}}
	case failed:
		return preflight.Because(reason)
	}
	return nil
}

// kubernetesVersionSkew checks the version skew policy of Kubernetes: kubelets must not be newer than the API server, and at most
// three minor versions older (two before v1.28).
func kubernetesVersionSkew(c creation) []preflight.Failure {
	plane := c.version
	own, ok, err := versionOf(c.set)
	if err != nil || !ok {
		return when(false, "", err)
	}
	skew := uint64(3)
	if plane.Minor < 28 {
		skew = 2
	}
	failed := own.Minor > plane.Minor || own.Minor+skew < plane.Minor
	return when(failed, fmt.Sprintf("version v%s is incompatible with the control plane's v%s: "+
		"it must not be newer, and at most %d minor versions older", own, plane, skew), nil)
}

// kubeadmVersionSkew checks that kubeadm and the control plane have the same minor version, which is what kubeadm join supports. It does
// not check a group with a version of its own, which could never replace or add Machines: the kubeadm control plane keeps the configuration
// that kubeadm reads in a version that the oldest one within the skew knows.
func kubeadmVersionSkew(c creation) []preflight.Failure {
	ref := c.set.Spec.Template.Spec.Bootstrap.ConfigRef
	own, ok, err := versionOf(c.set)
	if err != nil || !ok || ref.Kind != "KubeadmConfigTemplate" || ref.APIGroup != "bootstrap.cluster.x-k8s.io" || c.isPinned() {
		return when(false, "", err)
	}
	return when(own.Minor != c.version.Minor,
		fmt.Sprintf("kubeadm v%s cannot join a control plane of v%s: the minor versions must be equal", own, c.version), nil)
}

func versionOf(set *clusterv1.MachineSet) (version semver.Version, ok bool, err error) {
	if set.Spec.Template.Spec.Version == "" {
		return version, false, nil
	}
	version, err = semver.ParseTolerant(set.Spec.Template.Spec.Version)
	return version, true, err
}
