package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// complete creates what the control plane's Machines refer to and what is not there yet: the process may have ended
// after it created a Machine.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, m := range s.machines {
		if !m.deleting() {
			errs = append(errs, c.completeMachine(ctx, s, m))
		}
	}
	if err := errors.Join(errs...); err != nil || len(errs) == 0 {
		return step.Result{}, err
	}
	condition.Set(s.kcp, condition.True(controlplanev1.MachinesCreatedCondition))
	return step.Done(), nil
}

func (c *Controller) completeMachine(ctx context.Context, s *scope, m *machine) error {
	// Machines that were adopted may refer to whatever they like; ours refer to objects of their own name.
	ref := m.Spec.Bootstrap.ConfigRef
	if m.config == nil && ref != nil && ref.Name == m.Name && m.Spec.Bootstrap.DataSecretName == nil {
		if stale, err := c.confirmFirst(ctx, s, m); stale != "" || err != nil {
			return cmp.Or(err, step.Stale("the cache does not show %s yet", stale))
		}
		if err := c.createConfig(ctx, s, m); err != nil {
			return c.notCreated(ctx, s, controlplanev1.BootstrapTemplateCloningFailedReason, err)
		}
	}
	if m.infrastructure == nil && m.Spec.InfrastructureRef.Name == m.Name && !m.Status.InfrastructureReady && m.Spec.ProviderID == nil {
		if err := c.createInfrastructure(ctx, s, m); err != nil {
			return c.notCreated(ctx, s, controlplanev1.InfrastructureTemplateCloningFailedReason, err)
		}
	}
	return nil
}

// createConfig: the first Machine of a cluster initialises it, all others join.
func (c *Controller) createConfig(ctx context.Context, s *scope, m *machine) error {
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: s.belongingTo(m.Machine)}
	s.kcp.Spec.KubeadmConfigSpec.DeepCopyInto(&config.Spec)
	if s.first(m) {
		config.Spec.JoinConfiguration = nil
		if config.Spec.ClusterConfiguration == nil && config.Spec.InitConfiguration == nil {
			// Without either, the bootstrap provider waits for somebody else to initialise the cluster.
			config.Spec.InitConfiguration = &bootstrapv1.InitConfiguration{}
		}
	} else {
		config.Spec.InitConfiguration, config.Spec.ClusterConfiguration = nil, nil
	}
	err := c.Create(ctx, config)
	if apierrors.IsAlreadyExists(err) {
		return c.verify(ctx, configKind, m.Machine)
	}
	if err != nil {
		return fmt.Errorf("creating KubeadmConfig %s: %w", config.Name, err)
	}
	m.config = config
	return nil
}

// confirmFirst makes sure that a Machine which looks like the one that initialises the cluster is.
func (c *Controller) confirmFirst(ctx context.Context, s *scope, m *machine) (stale string, err error) {
	if !s.first(m) || s.confirmed {
		return "", nil
	}
	return c.confirmFounding(ctx, s)
}

func (s *scope) first(m *machine) bool {
	return !s.begun() && len(s.machines) == 1 && s.machines[0] == m
}

func (c *Controller) createInfrastructure(ctx context.Context, s *scope, m *machine) error {
	infrastructure, err := c.clone(ctx, s, m.Name)
	if err != nil {
		return err
	}
	kind := infrastructure.GroupVersionKind()
	if kind.GroupKind() != m.Spec.InfrastructureRef.GroupVersionKind().GroupKind() {
		return fmt.Errorf("machine %s refers to a %s, the template makes a %s: delete the Machine", m.Name, m.Spec.InfrastructureRef.Kind, kind.Kind)
	}
	infrastructure.SetOwnerReferences(s.belongingTo(m.Machine).OwnerReferences)
	err = c.Create(ctx, infrastructure)
	if apierrors.IsAlreadyExists(err) {
		return c.verify(ctx, kind, m.Machine)
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", kind.Kind, infrastructure.GetName(), err)
	}
	m.infrastructure = infrastructure
	return nil
}

// belongingTo is the metadata of what is made for a Machine.
func (s *scope) belongingTo(m *clusterv1.Machine) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name,
		Labels: s.labels(), Annotations: s.annotations(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, machineKind)},
	}
}

// verify makes sure that an object which was there already is the one that we would have made.
func (c *Controller) verify(ctx context.Context, kind schema.GroupVersionKind, m *clusterv1.Machine) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(m), obj); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, m.Name, err)
	}
	if !metav1.IsControlledBy(obj, m) {
		return fmt.Errorf("there is a %s %s that does not belong to the Machine of that name: delete it", kind.Kind, m.Name)
	}
	return nil
}

func machineResource() schema.GroupResource {
	return clusterv1.GroupVersion.WithResource("machines").GroupResource()
}
