package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// check is one reason to refuse a rotation. It returns an empty string, or what is wrong and what to do.
type check struct {
	name string
	why  func(s *scope) string
}

// checks are made before a rotation begins, in order. Each may rely on those before it.
func checks() []check {
	return []check{
		{"control plane", controlPlaneUnfit},
		{"operation", otherOperation},
		{"completeness", controlPlaneIncomplete},
		{"etcd", externalEtcd},
		{"certificates", ownCertificates},
		{"authorities", authoritiesUnfit},
		{"machine pools", unmanagedPools},
		{"pauses", pausedDeployments},
		{"machines", unhealthyMachines},
	}
}

// admit refuses what cannot work, and waits until the user has confirmed. Afterwards, it only checks that the Cluster still exists.
func (c *Controller) admit(ctx context.Context, s *scope) (step.Result, error) {
	if s.Underway() && (s.cluster == nil || s.controlPlane == nil || !s.cluster.DeletionTimestamp.IsZero()) {
		if err := c.seal(ctx, s); err != nil {
			return step.Done(), err
		}
		return s.Fail(fmt.Sprintf("Cluster %s, or its control plane, was deleted", s.rotation.Spec.ClusterName)), nil
	}
	if s.Underway() {
		return step.Done(), nil
	}
	for _, one := range checks() {
		if why := one.why(s); why != "" {
			return s.Refuse(why), nil
		}
	}
	if !s.Confirmed {
		return s.NotConfirmed(announcement(s)), nil
	}
	if ptr.Deref(s.rotation.Spec.Paused, false) {
		return s.Paused(operation.RefusedRetry, "The rotation is paused before it begins: nothing was changed"), nil
	}
	return step.Done(), nil
}

// announcement says what the user confirms.
func announcement(s *scope) string {
	controlPlane, workers := len(s.controlPlaneMachines()), len(s.workerMachines())
	times := map[bool]int{}
	for _, name := range steps() {
		times[true] += rolloutsNeeded(s, name)
		if replacesWorkers(s, name) {
			times[false]++
		}
	}
	text := fmt.Sprintf("To go on, set spec.confirm to %q. This is rotated: %s. %s of the control plane %s replaced %s",
		s.rotation.Spec.ClusterName, listed(s.authorities()), report.Count(controlPlane, "Machine"), are(controlPlane), often(times[true]))
	if workers > 0 && times[false] > 0 {
		text += fmt.Sprintf(", and %s %s", report.Count(workers, "other Machine"), often(times[false]))
	}
	text += fmt.Sprintf(": %s. ", report.Count(controlPlane*times[true]+workers*times[false], "new Machine"))
	if s.rotates(fleetv1.ClusterCA) {
		text += "At the end, kubeconfigs and client certificates that users have copied or issued are refused: read the Secret " +
			pki.SecretName(s.rotation.Spec.ClusterName, pki.Kubeconfig) + " again after each step, and issue others again after step " +
			fleetv1.ReissueStep + ". "
	}
	if s.rotates(fleetv1.ServiceAccountKey) {
		text += "Copies of ServiceAccount tokens outside of the cluster are refused at the end, too. "
	}
	if names := onDelete(s); len(names) > 0 && times[false] > 0 {
		text += "The Machines of " + report.Names(names) + " have to be deleted by you in each step: their strategy is OnDelete. "
	}
	return strings.TrimSpace(text)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return report.Count(n, "time")
}

func listed(all []fleetv1.Authority) string {
	names := make([]string, 0, len(all))
	for _, a := range all {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

func controlPlaneUnfit(s *scope) string {
	name := s.rotation.Spec.ClusterName
	switch {
	case s.cluster == nil:
		return fmt.Sprintf("Cluster %s does not exist in namespace %s", name, s.rotation.Namespace)
	case !s.cluster.DeletionTimestamp.IsZero():
		return fmt.Sprintf("Cluster %s is being deleted", name)
	case s.controlPlane == nil:
		return fmt.Sprintf("the control plane of Cluster %s is not a KubeadmControlPlane: only its certificate authorities can be rotated", name)
	case ptr.Deref(s.cluster.Spec.Paused, false):
		return fmt.Sprintf("Cluster %s is paused (spec.paused): its Machines could not be replaced", name)
	}
	kcp := s.controlPlane
	if _, paused := kcp.Annotations[clusterv1.PausedAnnotation]; paused {
		return fmt.Sprintf("KubeadmControlPlane %s is paused by an annotation: remove it, its Machines could not be replaced", kcp.Name)
	}
	return ""
}

// otherOperation is why a rotation must not begin during another operation, such as another rotation. It comes before what that does to the
// control plane and its certificates.
func otherOperation(s *scope) string {
	if err := hold.Busy(s.controlPlane, s.operation()); err != nil {
		return err.Error()
	}
	return ""
}

func controlPlaneIncomplete(s *scope) string {
	kcp := s.controlPlane
	if after := kcp.Spec.Rollout.After; !after.IsZero() && after.After(s.now) {
		return fmt.Sprintf("KubeadmControlPlane %s has a rollout scheduled, spec.rollout.after: wait until then, or remove it", kcp.Name)
	}
	if !ptr.Deref(kcp.Status.Initialization.ControlPlaneInitialized, false) || !settled(kcp) {
		return fmt.Sprintf("KubeadmControlPlane %s is not complete: all its Machines must be up to date and available", kcp.Name)
	}
	return ""
}

// settled reports whether a control plane has all Machines, up to date and available.
func settled(kcp *controlplanev1.KubeadmControlPlane) bool {
	want := ptr.Deref(kcp.Spec.Replicas, 1)
	return kcp.Status.ObservedGeneration == kcp.Generation && want == ptr.Deref(kcp.Status.Replicas, 0) &&
		want == ptr.Deref(kcp.Status.UpToDateReplicas, 0) && want == ptr.Deref(kcp.Status.AvailableReplicas, 0)
}

func externalEtcd(s *scope) string {
	if kubeadm.Defined(s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External) && s.rotates(fleetv1.EtcdCA) {
		return "etcd is external: its certificate authority has to be rotated where it runs. Leave EtcdCA out of spec.authorities"
	}
	return ""
}

// ownCertificates refuses configurations of kubeadm that do not use the Secrets, or the file that kube-controller-manager signs with.
func ownCertificates(s *scope) string {
	config := &s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration
	if dir := config.CertificatesDir; dir != "" && dir != "/etc/kubernetes/pki" {
		return fmt.Sprintf("KubeadmControlPlane %s has certificatesDir %s: its machines do not use the Secrets of the Cluster",
			s.controlPlane.Name, dir)
	}
	for _, arg := range config.ControllerManager.ExtraArgs {
		signs := strings.HasPrefix(arg.Name, "cluster-signing-") && strings.HasSuffix(arg.Name, "-file")
		if (signs || arg.Name == "root-ca-file") && s.rotates(fleetv1.ClusterCA) {
			return fmt.Sprintf("KubeadmControlPlane %s sets --%s of kube-controller-manager, which then does not use the cluster's CA. "+
				"Remove it, or leave ClusterCA out of spec.authorities", s.controlPlane.Name, arg.Name)
		}
	}
	return ""
}

func authoritiesUnfit(s *scope) string {
	for _, a := range s.authorities() {
		name := pki.SecretName(s.rotation.Spec.ClusterName, authority.Purpose(a))
		secret := s.secrets[a]
		if secret == nil {
			return fmt.Sprintf("Secret %s (%s) does not exist", name, a)
		}
		if err := authority.Check(a, secret.Data); err != nil {
			return fmt.Sprintf("Secret %s (%s): %v", name, a, err)
		}
	}
	return ""
}

func unmanagedPools(s *scope) string {
	if len(s.pools) == 0 || s.rotation.Spec.MachinePools == fleetv1.MachinePoolRotationUser || !s.replacesWorkersEver() {
		return ""
	}
	names := make([]string, 0, len(s.pools))
	for i := range s.pools {
		names = append(names, "MachinePool "+s.pools[i].Name)
	}
	return report.Names(names) + ": machines of MachinePools cannot be replaced by a rollout. Set spec.machinePools to User to replace them " +
		"yourself in each step"
}

func pausedDeployments(s *scope) string {
	if !s.replacesWorkersEver() {
		return ""
	}
	for i := range s.deployments {
		md := &s.deployments[i]
		_, annotated := md.Annotations[clusterv1.PausedAnnotation]
		if annotated || ptr.Deref(md.Spec.Paused, false) {
			return fmt.Sprintf("MachineDeployment %s is paused: its Machines could not be replaced", md.Name)
		}
	}
	return ""
}

func unhealthyMachines(s *scope) string {
	var names []string
	for i := range s.machines {
		if m := &s.machines[i]; !isReady(m) {
			names = append(names, "Machine "+m.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return report.Names(names) + " not ready, or being deleted: all Machines must be ready before a rotation begins"
}

// onDelete returns the MachineDeployments whose Machines users delete.
func onDelete(s *scope) []string {
	var names []string
	for i := range s.deployments {
		if md := &s.deployments[i]; md.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
			names = append(names, "MachineDeployment "+md.Name)
		}
	}
	return names
}
