package machinepool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// membersOf reads the machines of a pool, sorted by name.
func (c *Controller[P, M]) membersOf(ctx context.Context, from client.Reader, pool P) ([]Member[M], error) {
	what := c.provider.Pool.Kind + " " + pool.GetName()
	in := []client.ListOption{client.InNamespace(pool.GetNamespace())}
	if cluster := pool.GetLabels()[clusterv1.ClusterNameLabel]; cluster != "" {
		in = append(in, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	}
	list := c.provider.NewMachines()
	if err := from.List(ctx, list, in...); err != nil {
		return nil, fmt.Errorf("listing the %ss of %s: %w", c.provider.Machine.Kind, what, err)
	}
	var all []Member[M]
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		if obj, ok := o.(M); ok && ownership.Has(obj, pool) {
			all = append(all, Member[M]{Object: obj, Observation: c.provider.Observe(obj)})
		}
		return nil
	}); err != nil || len(all) == 0 {
		return nil, err
	}
	machines := &clusterv1.MachineList{}
	if err := from.List(ctx, machines, append(in, client.HasLabels{clusterv1.MachinePoolNameLabel})...); err != nil {
		return nil, fmt.Errorf("listing the Machines of %s: %w", what, err)
	}
	byName := map[string]*clusterv1.Machine{}
	for i, m := range machines.Items {
		if m.Spec.InfrastructureRef.Kind == c.provider.Machine.Kind {
			byName[m.Spec.InfrastructureRef.Name] = &machines.Items[i]
		}
	}
	for i := range all {
		all[i].Machine = byName[all[i].Object.GetName()]
	}
	slices.SortFunc(all, func(a, b Member[M]) int { return strings.Compare(a.Object.GetName(), b.Object.GetName()) })
	return all, nil
}

// available reports whether the Node of the machine is ready, too.
func (m Member[M]) available() bool {
	return m.Joined && m.Machine != nil && condition.IsTrue(m.Machine, clusterv1.MachineNodeHealthyV1Beta1Condition)
}

func (m Member[M]) deleting() bool {
	return !m.Object.GetDeletionTimestamp().IsZero() || m.Machine != nil && !m.Machine.DeletionTimestamp.IsZero()
}

func (m Member[M]) marked() bool {
	return ownership.Marked(m.Object) || m.Machine != nil && ownership.Marked(m.Machine)
}

// unhealthy reports whether the machine is known to be unhealthy. Whether it has joined without a Machine is up to the provider.
func (m Member[M]) unhealthy() bool {
	return !m.Joined || m.Machine != nil && ownership.Unhealthy(m.Machine)
}

// ordinal returns the ordinal in an annotation of a pool or a machine. ok is false if it has none: Cluster API v1.7 created the machine,
// or the pool has not created any yet.
func (a Annotations) ordinal(obj client.Object) (n int, ok bool) {
	n, err := strconv.Atoi(obj.GetAnnotations()[a.Ordinal])
	return n, err == nil && n >= 0
}

// domainOf returns the failure domain of a machine; empty if it has none.
func (p *Provider[P, M]) domainOf(m M) string {
	if p.Domain != nil {
		return *p.Domain(m)
	}
	return m.GetAnnotations()[p.Annotations.Domain]
}

// outdated returns why a machine must be replaced; empty if it is up to date.
func (s *scope[P, M]) outdated(m Member[M]) string {
	template := &s.pool.Spec.Template.Spec
	if m.Machine != nil && m.Machine.Spec.Version != "" && template.Version != "" {
		have, want := m.Machine.Spec.Version, template.Version
		if strings.TrimPrefix(have, "v") != strings.TrimPrefix(want, "v") {
			return fmt.Sprintf("its version is %s instead of %s", have, want)
		}
	}
	_, recorded := s.provider.Annotations.ordinal(m.Object)
	if why := s.provider.Outdated(s.obj, m.Object, recorded); why != "" || !recorded {
		return why
	}
	have, want := m.Object.GetAnnotations()[s.provider.Annotations.Data], ptr.Deref(template.Bootstrap.DataSecretName, "")
	if have != "" && want != "" && have != want {
		return fmt.Sprintf("its bootstrap data is in Secret %s instead of %s", have, want)
	}
	domain := s.provider.domainOf(m.Object)
	if domains := s.pool.Spec.FailureDomains; domain != "" && len(domains) > 0 && !slices.Contains(domains, domain) {
		return fmt.Sprintf("the pool does not have its failure domain %q", domain)
	}
	return ""
}

// managedExternally reports whether someone else decides on the number of machines.
func (s *scope[P, M]) managedExternally() bool {
	by, external := s.pool.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return external && by != "false"
}

// given returns how many machines the infrastructure wants, if it decides on that.
func (s *scope[P, M]) given() *int32 {
	if !s.managedExternally() || s.provider.Replicas == nil {
		return nil
	}
	return s.provider.Replicas(s.obj)
}

// frozen reports whether someone else creates and deletes the machines of the pool, once it has its first ones.
func (s *scope[P, M]) frozen() bool {
	_, created := s.provider.Annotations.ordinal(s.obj)
	return s.managedExternally() && s.given() == nil && (created || len(s.members) > 0)
}

// replicas returns how many machines the pool must have: those that it has, if the infrastructure creates and deletes them.
func (s *scope[P, M]) replicas() int {
	if s.frozen() {
		return len(slices.DeleteFunc(slices.Clone(s.members), Member[M].deleting))
	}
	if given := s.given(); given != nil {
		return int(max(0, *given))
	}
	return int(max(0, ptr.Deref(s.pool.Spec.Replicas, 1)))
}

// plan returns the next changes of the pool.
func (s *scope[P, M]) plan() plan {
	if s.frozen() || !s.pool.DeletionTimestamp.IsZero() || !s.cluster.DeletionTimestamp.IsZero() {
		return plan{} // In deletion, all machines are about to be deleted.
	}
	all := make([]instance, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, instance{
			name: m.Object.GetName(), created: m.Object.GetCreationTimestamp().Time, joined: m.Joined, available: m.available(),
			outdated: s.outdated(m), marked: m.marked(), unhealthy: m.unhealthy(), deleting: m.deleting(),
		})
	}
	return next(s.replicas(), s.incomplete() != "", all)
}
