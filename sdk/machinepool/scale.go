package machinepool

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// scale creates and deletes machines. If something has to change according to the cache, the objects that this depends on are read from
// the API server, and it is decided again. That costs four or five reads for each change, and none otherwise.
func (c *Controller[P, M]) scale(ctx context.Context, s *scope[P, M]) (step.Result, error) {
	if s.plan().none() && len(s.stranded()) == 0 && !s.unrecorded() {
		return s.unchanged(), nil
	}
	if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
		return result.KeepCondition(), err
	}
	decided := s.plan()
	for _, m := range s.members {
		if slices.Contains(decided.delete, m.Object.GetName()) {
			if err := c.delete(ctx, m, s.outdated(m)); err != nil {
				return step.Done(), err
			}
		}
	}
	for _, m := range s.stranded() {
		if err := c.delete(ctx, m, "its "+c.provider.Machine.Kind+" is being deleted"); err != nil {
			return step.Done(), err
		}
	}
	if err := c.create(ctx, s, decided.create); err != nil {
		return step.Done(), err
	}
	if s.unrecorded() {
		s.record(s.nextOrdinal())
	}
	if decided.none() {
		return s.unchanged(), nil
	}
	return step.Done(), nil
}

// unchanged returns the result if no machine is created or deleted.
func (s *scope[P, M]) unchanged() step.Result {
	if s.held() {
		return step.Wait(s.incomplete() + " before machines are replaced").KeepCondition()
	}
	return step.Done()
}

// stranded returns the machines whose infrastructure machine is being deleted, but whose Machine is not. It would never become ready again.
func (s *scope[P, M]) stranded() []Member[M] {
	return slices.DeleteFunc(slices.Clone(s.members), func(m Member[M]) bool {
		return m.Object.GetDeletionTimestamp().IsZero() || m.Machine == nil || !m.Machine.DeletionTimestamp.IsZero()
	})
}

// confirm replaces the owners and the machines in the scope with those of the API server. It waits if the cached pool or one of its
// owners is outdated.
func (c *Controller[P, M]) confirm(ctx context.Context, s *scope[P, M]) (step.Result, error) {
	cluster, pool := &clusterv1.Cluster{}, &clusterv1.MachinePool{}
	result, err := c.Latest(ctx,
		step.Reread(s.cluster, cluster, nil), step.Reread(s.pool, pool, nil), step.Reread(s.obj, c.provider.NewPool(), c.same))
	if err != nil || result.Ends() {
		return result, err
	}
	members, err := c.membersOf(ctx, c.Live, s.obj)
	if err != nil {
		return step.Done(), err
	}
	s.cluster, s.pool, s.members = cluster, pool, members
	return step.Done(), nil
}

// same reports whether two versions of an infrastructure pool lead to the same machines.
func (c *Controller[P, M]) same(live, cached P) bool {
	for _, annotation := range []string{c.provider.Annotations.Ordinal, clusterv1.MachinePoolRevisionAnnotation} {
		if live.GetAnnotations()[annotation] != cached.GetAnnotations()[annotation] {
			return false
		}
	}
	return c.provider.SameTemplate(live, cached) &&
		(c.provider.Replicas == nil || ptr.Equal(c.provider.Replicas(live), c.provider.Replicas(cached)))
}

// delete deletes a machine as it was read. Its Machine drains the Node, and then deletes the infrastructure machine.
func (c *Controller[P, M]) delete(ctx context.Context, m Member[M], why string) error {
	var target client.Object = m.Object
	kind := c.provider.Machine.Kind
	if m.Machine != nil {
		target, kind = m.Machine, clusterv1.MachineKind
	}
	if err := c.Delete(ctx, target); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedDelete", "Failed to delete %s %q: %v", kind, target.GetName(), err)
		}
		return fmt.Errorf("deleting %s %s: %w", kind, target.GetName(), err)
	}
	if why != "" {
		why = ", because " + why
	}
	step.Event(ctx, "SuccessfulDelete", "Deleted %s %q%s", kind, target.GetName(), why)
	return nil
}

// create creates infrastructure machines, and waits until they are in the cache.
func (c *Controller[P, M]) create(ctx context.Context, s *scope[P, M], count int) error {
	var created []client.Object
	defer func() {
		for _, obj := range created {
			step.AwaitVisible(ctx, c.Client, obj)
		}
	}()
	for range count {
		obj := s.newMachine()
		used, _ := c.provider.Annotations.ordinal(obj)
		err := c.CreateIn(ctx, nil, obj)
		if err == nil || apierrors.IsAlreadyExists(err) {
			s.record(used + 1)
		}
		if apierrors.IsAlreadyExists(err) {
			return step.Stale("%s %s already exists", c.provider.Machine.Kind, obj.GetName())
		}
		if err != nil {
			step.Warning(ctx, "FailedCreate", "Failed to create %s %q: %v", c.provider.Machine.Kind, obj.GetName(), err)
			return &step.Error{
				Reason: clusterv1.MachineCreationFailedV1Beta1Reason,
				Err:    fmt.Errorf("creating %s %s: %w", c.provider.Machine.Kind, obj.GetName(), err),
			}
		}
		step.Event(ctx, "SuccessfulCreate", "Created %s %q", c.provider.Machine.Kind, obj.GetName())
		s.members, created = append(s.members, Member[M]{Object: obj, Observation: c.provider.Observe(obj)}), append(created, obj)
	}
	return nil
}

// nextOrdinal returns an ordinal that no machine had before: the one that the pool records, unless a machine has it.
func (s *scope[P, M]) nextOrdinal() int {
	next, _ := s.provider.Annotations.ordinal(s.obj)
	for _, m := range s.members {
		if n, ours := s.provider.Annotations.ordinal(m.Object); ours {
			next = max(next, n+1)
		}
	}
	return next
}

// unrecorded reports whether the pool does not record the next ordinal, because the process was killed after it had created a
// machine. If that machine disappeared, its name would be used again.
func (s *scope[P, M]) unrecorded() bool {
	recorded, _ := s.provider.Annotations.ordinal(s.obj)
	return recorded < s.nextOrdinal()
}

func (s *scope[P, M]) record(next int) {
	annotate(s.obj, s.provider.Annotations.Ordinal, strconv.Itoa(next))
}

// newMachine returns the next infrastructure machine.
func (s *scope[P, M]) newMachine() M {
	names, next := s.provider.Annotations, s.nextOrdinal()
	obj := s.provider.NewMachine(s.obj)
	obj.SetNamespace(s.obj.GetNamespace())
	obj.SetName(s.provider.MachineName(s.obj, next))
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel], labels[clusterv1.MachinePoolNameLabel] = s.cluster.Name, naming.LabelValue(s.pool.Name)
	obj.SetLabels(labels)
	obj.SetOwnerReferences([]metav1.OwnerReference{ownership.Reference(s.obj, s.provider.Pool, false)})
	annotate(obj, names.Ordinal, strconv.Itoa(next))
	annotate(obj, names.Data, ptr.Deref(s.pool.Spec.Template.Spec.Bootstrap.DataSecretName, ""))
	if domain := s.emptiestDomain(); s.provider.Domain != nil {
		*s.provider.Domain(obj) = domain
	} else {
		annotate(obj, names.Domain, domain)
	}
	return obj
}

// annotate sets an annotation, unless the value is empty.
func annotate(obj client.Object, name, value string) {
	if value == "" {
		return
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	obj.SetAnnotations(annotations)
}

// emptiestDomain returns the failure domain of the pool with the fewest machines; empty if the pool has none.
func (s *scope[P, M]) emptiestDomain() string {
	has := map[string]int{}
	for _, m := range s.members {
		if !m.deleting() {
			has[s.provider.domainOf(m.Object)]++
		}
	}
	best := ""
	for _, domain := range slices.Sorted(slices.Values(s.pool.Spec.FailureDomains)) {
		if best == "" || has[domain] < has[best] {
			best = domain
		}
	}
	return best
}
