package machinedeployment

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/internal/step"
)

// plan decides how many replicas each MachineSet has.
func (c *Controller) plan(ctx context.Context, s *scope) (step.Result, error) {
	strategy := strategyOf(s.deployment)
	if err := s.bounds(); err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.strategy.rollingUpdate of MachineDeployment %s: %w", s.deployment.Name, err))
	}
	machines := map[string]int32{}
	if strategy == clusterv1.OnDeleteMachineDeploymentStrategyType {
		var err error
		if machines, err = c.count(ctx, s); err != nil {
			return step.Done(), err
		}
	}
	r := s.rollout(machines)
	switch {
	case s.deployment.Spec.Paused:
		s.targets = r.Scale(strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType)
	case strategy == clusterv1.RollingUpdateMachineDeploymentStrategyType:
		s.targets = r.RollingUpdate()
	case strategy == clusterv1.OnDeleteMachineDeploymentStrategyType:
		s.targets = r.OnDelete()
	default:
		return step.Done(), step.Terminal(fmt.Errorf("spec.strategy.type of MachineDeployment %s is %q: it must be RollingUpdate or OnDelete", s.deployment.Name, strategy))
	}
	return step.Done(), nil
}

func strategyOf(md *clusterv1.MachineDeployment) clusterv1.MachineDeploymentStrategyType {
	if md.Spec.Strategy == nil || md.Spec.Strategy.Type == "" {
		return clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	return md.Spec.Strategy.Type
}

// bounds resolves maxSurge and maxUnavailable, which only rolling updates have.
func (s *scope) bounds() (err error) {
	if strategyOf(s.deployment) != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return nil
	}
	update := &clusterv1.MachineRollingUpdateDeployment{}
	if s.deployment.Spec.Strategy != nil && s.deployment.Spec.Strategy.RollingUpdate != nil {
		update = s.deployment.Spec.Strategy.RollingUpdate
	}
	s.surge, s.unavailable, err = rollout.Bounds(*s.deployment.Spec.Replicas, update.MaxSurge, update.MaxUnavailable)
	return err
}

// rollout is the deployment as the planner sees it.
func (s *scope) rollout(machines map[string]int32) rollout.Rollout {
	r := rollout.Rollout{Desired: *s.deployment.Spec.Replicas, MaxSurge: s.surge, MaxUnavailable: s.unavailable}
	for _, set := range s.old() {
		r.Old = append(r.Old, observed(set, machines))
	}
	switch {
	case s.current != nil:
		r.New = ptr.To(observed(s.current, machines))
	case !s.deployment.Spec.Paused:
		r.New = &rollout.Set{Name: s.fresh.name}
	}
	return r
}

func observed(set *clusterv1.MachineSet, machines map[string]int32) rollout.Set {
	return rollout.Set{
		Name:      set.Name,
		Created:   set.CreationTimestamp.Time,
		Revision:  revision(set.Annotations),
		Replicas:  ptr.Deref(set.Spec.Replicas, 0),
		Actual:    set.Status.Replicas,
		Available: set.Status.AvailableReplicas,
		Machines:  machines[set.Name],
		Frozen:    metav1.HasAnnotation(set.ObjectMeta, clusterv1.DisableMachineCreateAnnotation),
		Desired:   number(set, clusterv1.DesiredReplicasAnnotation),
		Max:       number(set, clusterv1.MaxReplicasAnnotation),
	}
}

// number is the value of an annotation, zero if it is none.
func number(set *clusterv1.MachineSet, annotation string) int32 {
	n, err := strconv.ParseInt(set.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// count counts the Machines of each MachineSet that are not being deleted, by the set's name.
func (c *Controller) count(ctx context.Context, s *scope) (map[string]int32, error) {
	list := &clusterv1.MachineList{}
	err := c.Client.List(ctx, list, client.InNamespace(s.deployment.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: s.deployment.Name})
	if err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	machines := map[string]int32{}
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Kind == machineSetKind && list.Items[i].DeletionTimestamp.IsZero() {
			machines[owner.Name]++
		}
	}
	return machines, nil
}
