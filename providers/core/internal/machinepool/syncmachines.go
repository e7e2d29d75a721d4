package machinepool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// syncMachines updates labels, annotations, timeouts, readiness gates and taints of the Machines from the template in place, and their
// version from their kubelet. It makes the pool the controller of those that lost their owner reference, and keeps what other clients set.
func (c *Controller) syncMachines(ctx context.Context, s *scope) (step.Result, error) {
	existing := s.byInfraMachine()
	for _, infra := range s.infraMachines {
		m := existing[infra.GetName()]
		if m == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if _, err := c.apply(ctx, m, c.inPlace(s, m)); err != nil {
			s.report(fmt.Errorf("updating Machine %s in place: %w", m.Name, err))
		}
	}
	return step.Done(), nil
}

// newMachine returns the Machine of an infrastructure machine. It has no bootstrap data, which an empty name tells: the infrastructure
// provider uses that of the pool. The infrastructure reports provider ID and failure domain.
func newMachine(s *scope, infra *unstructured.Unstructured) *clusterv1.Machine {
	template := s.pool.Spec.Template.DeepCopy()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.pool.Namespace, Name: infra.GetName(),
			Labels: template.Labels, Annotations: template.Annotations,
			Finalizers: []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(s.pool, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), true),
			},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: s.pool.Spec.ClusterName, Version: template.Spec.Version, Deletion: template.Spec.Deletion,
			ReadinessGates: template.Spec.ReadinessGates, Taints: template.Spec.Taints,
			Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: s.machineKind.Group, Kind: s.machineKind.Kind, Name: infra.GetName(),
			},
		},
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[clusterv1.ClusterNameLabel] = s.pool.Spec.ClusterName
	m.Labels[clusterv1.MachinePoolNameLabel] = naming.LabelValue(s.pool.Name)
	return m
}

// inPlace returns the desired state of an existing Machine: metadata and timeouts come from the template, the rest from the Machine.
func (c *Controller) inPlace(s *scope, m *clusterv1.Machine) *clusterv1.Machine {
	infra := &unstructured.Unstructured{}
	infra.SetName(m.Name)
	out := newMachine(s, infra)
	out.UID = m.UID
	if !slices.Contains(m.Finalizers, clusterv1.MachineFinalizer) {
		out.Finalizers = nil // the Machine controller adds it
	}
	out.Spec.Version, out.Spec.InfrastructureRef = versionOf(m), m.Spec.InfrastructureRef
	return out
}

// versionOf returns the version of a Machine's kubelet, which the infrastructure decides: it may update machines in place, or create them
// with another version. Until the kubelet reports one, it is that of the template from which the Machine was created.
func versionOf(m *clusterv1.Machine) string {
	kubelet := kubeletVersion(m)
	if _, err := semver.Parse(strings.TrimPrefix(kubelet, "v")); err != nil || !strings.HasPrefix(kubelet, "v") {
		return m.Spec.Version
	}
	return kubelet
}

// kubeletVersion returns the version that a Machine's kubelet has reported.
func kubeletVersion(m *clusterv1.Machine) string {
	if m.Status.NodeInfo == nil {
		return ""
	}
	return m.Status.NodeInfo.KubeletVersion
}

// apply applies the desired state of a Machine if it differs, and returns the Machine as it is then. live is nil for a new one.
func (c *Controller) apply(ctx context.Context, live, want *clusterv1.Machine) (*clusterv1.Machine, error) {
	current, configuration, err := ssa.Typed(live, want, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if err != nil {
		return live, err
	}
	result, changed, err := c.applier.Apply(ctx, current, configuration)
	if err != nil || !changed {
		return live, err
	}
	m := &clusterv1.Machine{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object, m)
}
