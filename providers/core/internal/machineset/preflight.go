package machineset

import (
	"context"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// preflightCheck is a check to pass before Machines are created.
type preflightCheck struct {
	name clusterv1.MachineSetPreflightCheck
	// check returns why the check failed; empty if it passed.
	check func(set *clusterv1.MachineSet, plane contract.ControlPlane, version semver.Version) (string, error)
}

// preflightChecks returns all checks, in the order in which failures are reported.
func preflightChecks() []preflightCheck {
	return []preflightCheck{
		{clusterv1.MachineSetPreflightCheckControlPlaneIsStable, controlPlaneIsStable},
		{clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, kubernetesVersionSkew},
		{clusterv1.MachineSetPreflightCheckKubeadmVersionSkew, kubeadmVersionSkew},
	}
}

// preflightFailure returns why Machines must not be created now; empty if all checks passed. Without a control plane object that
// has a version, it checks nothing.
func (c *Controller) preflightFailure(ctx context.Context, s *scope) (string, error) {
	if !c.preflight || s.cluster.Spec.ControlPlaneRef == nil || skips(s.set, clusterv1.MachineSetPreflightCheckAll) {
		return "", nil
	}
	obj, err := c.external.Get(ctx, s.cluster.Spec.ControlPlaneRef, s.cluster.Namespace)
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
	var failures []string
	for _, p := range preflightChecks() {
		if skips(s.set, p.name) {
			continue
		}
		failure, err := p.check(s.set, plane, version)
		if err != nil {
			return "", err
		}
		if failure != "" {
			failures = append(failures, fmt.Sprintf("%s: %s", p.name, failure))
		}
	}
	return strings.Join(failures, "; "), nil
}

func skips(set *clusterv1.MachineSet, name clusterv1.MachineSetPreflightCheck) bool {
	for skipped := range strings.SplitSeq(set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation], ",") {
		if strings.TrimSpace(skipped) == string(name) {
			return true
		}
	}
	return false
}

func controlPlaneIsStable(_ *clusterv1.MachineSet, plane contract.ControlPlane, _ semver.Version) (string, error) {
	if provisioning, err := plane.IsProvisioning(); err != nil || provisioning {
		return when(provisioning, "the control plane is being provisioned"), err
	}
	upgrading, err := plane.IsUpgrading()
	return when(upgrading, "the control plane is being upgraded"), err
}

func when(failed bool, message string) string {
	if failed {
		return message
	}
	return ""
}

// kubernetesVersionSkew checks the version skew policy of Kubernetes: kubelets must not be newer than the API server, and at most
// three minor versions older (two before v1.28).
func kubernetesVersionSkew(set *clusterv1.MachineSet, _ contract.ControlPlane, plane semver.Version) (string, error) {
	own, ok, err := versionOf(set)
	if err != nil || !ok {
		return "", err
	}
	skew := uint64(3)
	if plane.Minor < 28 {
		skew = 2
	}
	failed := own.Minor > plane.Minor || own.Minor+skew < plane.Minor
	return when(failed, fmt.Sprintf("version v%s is incompatible with the control plane's v%s: it must not be newer, and at most %d minor versions older", own, plane, skew)), nil
}

// kubeadmVersionSkew checks that kubeadm and the control plane have the same minor version, which kubeadm join requires.
func kubeadmVersionSkew(set *clusterv1.MachineSet, _ contract.ControlPlane, plane semver.Version) (string, error) {
	ref := set.Spec.Template.Spec.Bootstrap.ConfigRef
	own, ok, err := versionOf(set)
	if err != nil || !ok || ref == nil || ref.Kind != "KubeadmConfigTemplate" || ref.GroupVersionKind().Group != "bootstrap.cluster.x-k8s.io" {
		return "", err
	}
	return when(own.Minor != plane.Minor, fmt.Sprintf("kubeadm v%s cannot join a control plane of v%s: the minor versions must be equal", own, plane)), nil
}

func versionOf(set *clusterv1.MachineSet) (version semver.Version, ok bool, err error) {
	if set.Spec.Template.Spec.Version == nil {
		return version, false, nil
	}
	version, err = semver.ParseTolerant(*set.Spec.Template.Spec.Version)
	return version, true, err
}
