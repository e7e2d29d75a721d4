package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/outdated"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/naming"
	"sigs.k8s.io/cluster-api/provider/step"
)

var (
	configKind  = bootstrapv1.GroupVersion.WithKind("KubeadmConfig")
	machineKind = clusterv1.GroupVersion.WithKind("Machine")
)

// create makes a Machine, and then what it refers to. A crash in between is mended by the step complete.
func (c *Controller) create(ctx context.Context, s *scope, failureDomain string) error {
	infrastructure, err := c.clone(ctx, s, s.machineName())
	if err != nil {
		return c.notCreated(ctx, s, controlplanev1.InfrastructureTemplateCloningFailedReason, err)
	}
	m, err := s.newMachine(infrastructure, failureDomain)
	if err != nil {
		return c.notCreated(ctx, s, controlplanev1.MachineGenerationFailedReason, err)
	}
	err = c.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		return c.alreadyThere(ctx, s, m)
	}
	if err != nil {
		return c.notCreated(ctx, s, controlplanev1.MachineGenerationFailedReason, fmt.Errorf("creating Machine %s: %w", m.Name, err))
	}
	delete(s.kcp.Annotations, controlplanev1.RemediationInProgressAnnotation) // the Machine has it now
	member := &machine{Machine: m}
	s.machines = append(s.machines, member)
	if err := c.completeMachine(ctx, s, member); err != nil {
		return err
	}
	condition.Set(s.kcp, condition.True(controlplanev1.MachinesCreatedCondition))
	return nil
}

// alreadyThere: the cache does not show the Machine yet that we made from the same view. Anything else of that name
// is in the way.
func (c *Controller) alreadyThere(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	live := &clusterv1.Machine{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	if !metav1.IsControlledBy(live, s.kcp) {
		err := fmt.Errorf("there is a Machine %s that belongs to somebody else: delete or rename it", m.Name)
		return c.notCreated(ctx, s, controlplanev1.MachineGenerationFailedReason, err)
	}
	return step.Stale("Machine %s exists, and the cache does not show it", m.Name)
}

// notCreated states why no Machine could be made.
func (c *Controller) notCreated(ctx context.Context, s *scope, reason string, err error) error {
	if step.IsStale(err) {
		return err
	}
	stated := condition.False(controlplanev1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, reason, "%s", err)
	if before := condition.Get(s.kcp, controlplanev1.MachinesCreatedCondition); before == nil || !condition.SameState(*before, stated) {
		event := "FailedScaleUp"
		if !s.kcp.Status.Initialized {
			event = "FailedInitialization"
		}
		step.Warning(ctx, event, "Cannot create a control plane Machine: %s", err)
	}
	condition.Set(s.kcp, stated)
	return err
}

// machineName derives a name from the Machines that are there: the same view gives the same name, so that acting twice
// on one view collides, and as UIDs do not come back, neither do names. A replacement of a failed Machine is told from
// it by the record of the remediation.
func (s *scope) machineName() string {
	parts := []string{string(s.kcp.UID), s.kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]}
	var uids []string
	for _, m := range s.machines {
		uids = append(uids, string(m.UID))
	}
	slices.Sort(uids)
	return naming.WithSuffix(s.kcp.Name, naming.Suffix(append(parts, uids...)...))
}

func (s *scope) newMachine(infrastructure *unstructured.Unstructured, failureDomain string) (*clusterv1.Machine, error) {
	recorded, err := json.Marshal(s.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration)
	if err != nil {
		return nil, fmt.Errorf("recording clusterConfiguration: %w", err)
	}
	hash, err := outdated.ConfigHash(s.kcp)
	if err != nil {
		return nil, err
	}
	annotations := s.annotations()
	annotations[outdated.ConfigAnnotation] = hash
	annotations[controlplanev1.KubeadmClusterConfigurationAnnotation] = string(recorded)
	if s.stacked() {
		annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
	}
	if remediated, ok := s.kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; ok {
		annotations[controlplanev1.RemediationForAnnotation] = remediated
	}
	template := s.kcp.Spec.MachineTemplate
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.kcp.Namespace, Name: infrastructure.GetName(),
			Labels: s.labels(), Annotations: annotations,
			Finalizers:      []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{*s.owner()},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: s.cluster.Name,
			Version:     ptr.To(s.kcp.Spec.Version),
			Bootstrap: clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{
				APIVersion: configKind.GroupVersion().String(), Kind: configKind.Kind,
				Namespace: s.kcp.Namespace, Name: infrastructure.GetName(),
			}},
			InfrastructureRef: corev1.ObjectReference{
				APIVersion: infrastructure.GetAPIVersion(), Kind: infrastructure.GetKind(),
				Namespace: s.kcp.Namespace, Name: infrastructure.GetName(),
			},
			NodeDrainTimeout:        template.NodeDrainTimeout,
			NodeVolumeDetachTimeout: template.NodeVolumeDetachTimeout,
			NodeDeletionTimeout:     template.NodeDeletionTimeout,
		},
	}
	if failureDomain != "" {
		m.Spec.FailureDomain = &failureDomain
	}
	return m, nil
}

// labels are those of every Machine, its infrastructure and its KubeadmConfig.
func (s *scope) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, s.kcp.Spec.MachineTemplate.ObjectMeta.Labels)
	labels[clusterv1.ClusterNameLabel] = s.cluster.Name
	labels[clusterv1.MachineControlPlaneLabel] = ""
	labels[clusterv1.MachineControlPlaneNameLabel] = naming.LabelValue(s.kcp.Name)
	return labels
}

// annotations are those of every Machine, its infrastructure and its KubeadmConfig.
func (s *scope) annotations() map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, s.kcp.Spec.MachineTemplate.ObjectMeta.Annotations)
	return annotations
}

// clone makes an infrastructure machine in memory.
func (c *Controller) clone(ctx context.Context, s *scope, name string) (*unstructured.Unstructured, error) {
	ref := s.kcp.Spec.MachineTemplate.InfrastructureRef
	template, err := c.External.Get(ctx, &ref, s.kcp.Namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the infrastructure template: %w", err)
	}
	return contract.Clone(contract.CloneInput{
		Template: template, Name: name, Namespace: s.kcp.Namespace, ClusterName: s.cluster.Name,
		Labels: s.labels(), Annotations: s.annotations(),
	})
}
