package config

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// owner finds the Machine or MachinePool that controls the config, and its Cluster. If one of them does not exist (yet), its creation
// triggers a reconcile.
func (c *Controller) owner(ctx context.Context, s *scope) (step.Result, error) {
	ref := metav1.GetControllerOf(s.config)
	var owner client.Object
	switch {
	case ref == nil:
		return step.Stop(), nil
	case ref.Kind == clusterv1.MachineKind:
		s.machine = &clusterv1.Machine{}
		owner = s.machine
	case ref.Kind == clusterv1.MachinePoolKind && c.pools:
		s.pool = &clusterv1.MachinePool{}
		owner = s.pool
	default:
		return step.Stop(), nil
	}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: ref.Name}, owner); err != nil {
		return step.Stop(), client.IgnoreNotFound(err)
	}
	if owner.GetUID() != ref.UID {
		// The replacement of an object by one of the same name may be an update event, which does not trigger a reconcile.
		return step.WaitAtMost(backstop, "the "+ref.Kind+" that owns it, which is not the current one of that name"), nil
	}
	var err error
	s.cluster, err = ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: s.config.Namespace, Name: s.clusterName()})
	if err != nil || s.cluster == nil {
		return step.Stop(), err
	}
	if s.pool != nil {
		s.hash, err = specHash(ctx, s.config)
	}
	return step.Done(), err
}

func (s *scope) clusterName() string {
	if s.pool != nil {
		return s.pool.Spec.ClusterName
	}
	return s.machine.Spec.ClusterName
}

// ownerName returns the kind and name of the owner.
func (s *scope) ownerName() string {
	if s.pool != nil {
		return clusterv1.MachinePoolKind + " " + s.pool.Name
	}
	return clusterv1.MachineKind + " " + s.machine.Name
}

// version returns the Kubernetes version of the owner, and the field that it is in.
func (s *scope) version() (version, path string) {
	if s.pool != nil {
		return s.pool.Spec.Template.Spec.Version, "spec.template.spec.version"
	}
	return s.machine.Spec.Version, "spec.version"
}

// ownData returns the Secret with the data that the owner was created with; nil if none. Of a MachinePool, it is nil: the name in a
// pool follows its configs, and is that of the previous one until this one is ready.
func (s *scope) ownData() *string {
	if s.pool != nil {
		return nil
	}
	return s.machine.Spec.Bootstrap.DataSecretName
}

// isControlPlane reports whether the config is that of a control plane machine. Those of pools are workers.
func (s *scope) isControlPlane() bool {
	if s.machine == nil {
		return false
	}
	_, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// joined reports whether the machine of a config has a Node, according to the cache. Pools never count as joined: their machines may
// come at any time.
func (c *Controller) joined(ctx context.Context, config *bootstrapv1.KubeadmConfig) bool {
	owner := metav1.GetControllerOf(config)
	if owner == nil || owner.Kind != clusterv1.MachineKind {
		return false
	}
	machine := &clusterv1.Machine{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: owner.Name}, machine)
	return err == nil && machine.Status.NodeRef.IsDefined()
}

// complete reports whether all machines of a pool have a Node.
func complete(p *clusterv1.MachinePool) bool {
	return len(p.Status.NodeRefs) >= int(ptr.Deref(p.Spec.Replicas, 1))
}

func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	if m, ok := obj.(*clusterv1.Machine); ok {
		return ofBootstrap(m.Namespace, m.Spec.Bootstrap)
	}
	return nil
}

func ofMachinePool(_ context.Context, obj client.Object) []reconcile.Request {
	if p, ok := obj.(*clusterv1.MachinePool); ok {
		return ofBootstrap(p.Namespace, p.Spec.Template.Spec.Bootstrap)
	}
	return nil
}

func ofBootstrap(namespace string, bootstrap clusterv1.Bootstrap) []reconcile.Request {
	if !bootstrap.ConfigRef.IsDefined() || bootstrap.ConfigRef.Kind != kubeadmConfigKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: bootstrap.ConfigRef.Name}}}
}
