package machinepool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/identity"
	"sigs.k8s.io/cluster-api/provider/naming"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

// staleBackstop bounds the wait for a stale cache. Usually an event comes first.
const staleBackstop = 10 * time.Second

// scale creates and deletes machines. If something has to change according to the cache, the objects that this depends on are read from
// the API server, and it is decided again. That costs four or five reads for each change, and none otherwise.
func (c *Controller) scale(ctx context.Context, s *scope) (step.Result, error) {
	if s.plan().none() && len(s.stranded()) == 0 {
		return step.Done(), nil
	}
	upToDate, err := c.confirm(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	if !upToDate {
		return step.WaitAtMost(staleBackstop, "the cache to catch up with the DockerMachinePool, its owners and its machines").KeepCondition(), nil
	}
	decided := s.plan()
	for _, m := range s.members {
		if slices.Contains(decided.delete, m.obj.Name) {
			if err := c.delete(ctx, m, m.outdated(s.pool, &s.obj.Spec.Template)); err != nil {
				return step.Done(), err
			}
		}
	}
	for _, m := range s.stranded() {
		if err := c.delete(ctx, m, "its DockerMachine is being deleted"); err != nil {
			return step.Done(), err
		}
	}
	if err := c.create(ctx, s, decided.create); err != nil {
		return step.Done(), err
	}
	return step.Done(), nil
}

// stranded returns the machines whose DockerMachine is being deleted, but whose Machine is not. It would never become ready again.
func (s *scope) stranded() []member {
	return slices.DeleteFunc(slices.Clone(s.members), func(m member) bool {
		return m.obj.DeletionTimestamp.IsZero() || m.machine == nil || !m.machine.DeletionTimestamp.IsZero()
	})
}

// confirm replaces the owners and the machines in the scope with those of the API server. It returns false if the cached pool is stale,
// or if it must not be changed any more.
func (c *Controller) confirm(ctx context.Context, s *scope) (upToDate bool, err error) {
	cluster, pool, obj := &clusterv1.Cluster{}, &clusterv1.MachinePool{}, &dockerv1.DockerMachinePool{}
	for _, read := range []struct{ cached, live client.Object }{{s.cluster, cluster}, {s.pool, pool}, {s.obj, obj}} {
		err := c.Live.Get(ctx, client.ObjectKeyFromObject(read.cached), read.live)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading %T %s from the API server: %w", read.live, read.cached.GetName(), err)
		}
		if read.live.GetUID() != read.cached.GetUID() {
			return false, nil
		}
	}
	if cluster.Spec.Paused || metav1.HasAnnotation(obj.ObjectMeta, clusterv1.PausedAnnotation) || !obj.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(obj.Spec.Template, s.obj.Spec.Template) || obj.Annotations[ordinalAnnotation] != s.obj.Annotations[ordinalAnnotation] {
		return false, nil
	}
	members, err := membersOf(ctx, c.Live, s.obj)
	if err != nil {
		return false, err
	}
	s.cluster, s.pool, s.members = cluster, pool, members
	return true, nil
}

// delete deletes a machine as it was read. Its Machine drains the Node, and then deletes the DockerMachine.
func (c *Controller) delete(ctx context.Context, m member, why string) error {
	var target client.Object = m.obj
	kind := "DockerMachine"
	if m.machine != nil {
		target, kind = m.machine, clusterv1.MachineKind
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

// create creates DockerMachines, and waits until they are in the cache.
func (c *Controller) create(ctx context.Context, s *scope, count int) error {
	var created []client.Object
	defer func() {
		for _, obj := range created {
			step.AwaitVisible(ctx, c.Client, obj)
		}
	}()
	for range count {
		obj := s.newMachine()
		used, _ := ordinal(obj)
		err := c.CreateIn(ctx, nil, obj)
		if err == nil || apierrors.IsAlreadyExists(err) {
			metav1.SetMetaDataAnnotation(&s.obj.ObjectMeta, ordinalAnnotation, strconv.Itoa(used+1))
		}
		if apierrors.IsAlreadyExists(err) {
			return step.Stale("DockerMachine %s already exists", obj.Name)
		}
		if err != nil {
			step.Warning(ctx, "FailedCreate", "Failed to create DockerMachine %q: %v", obj.Name, err)
			return &step.Error{Reason: clusterv1.MachineCreationFailedReason, Err: fmt.Errorf("creating DockerMachine %s: %w", obj.Name, err)}
		}
		step.Event(ctx, "SuccessfulCreate", "Created DockerMachine %q", obj.Name)
		s.members, created = append(s.members, member{obj: obj}), append(created, obj)
	}
	return nil
}

// newMachine returns the next DockerMachine. Its ordinal is one that none had before.
func (s *scope) newMachine() *dockerv1.DockerMachine {
	next, _ := ordinal(s.obj)
	for _, m := range s.members {
		if n, ours := ordinal(m.obj); ours {
			next = max(next, n+1)
		}
	}
	obj := &dockerv1.DockerMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.obj.Namespace, Name: nameOf(s.obj, next),
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:     s.cluster.Name,
				clusterv1.MachinePoolNameLabel: naming.LabelValue(s.pool.Name),
				identity.PoolLabel:             naming.LabelValue(s.obj.Name),
			},
			Annotations:     map[string]string{ordinalAnnotation: strconv.Itoa(next)},
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(s.obj, dockerv1.GroupVersion.WithKind(Kind), false)},
		},
		Spec: dockerv1.DockerMachineSpec{
			CustomImage: s.obj.Spec.Template.CustomImage, PreLoadImages: slices.Clone(s.obj.Spec.Template.PreLoadImages),
			ExtraMounts: slices.Clone(s.obj.Spec.Template.ExtraMounts),
		},
	}
	if domain := s.emptiestDomain(); domain != "" {
		obj.Annotations[identity.FailureDomainLabel] = domain
	}
	return obj
}

// nameOf returns the name of a DockerMachine, "worker-" and six characters, from its ordinal.
func nameOf(pool *dockerv1.DockerMachinePool, ordinal int) string {
	uid, number := string(pool.UID), strconv.Itoa(ordinal)
	return "worker-" + naming.Suffix(uid, number) + naming.Suffix(uid, number, "")[:1]
}

// emptiestDomain returns the failure domain of the pool with the fewest machines; empty if the pool has none.
func (s *scope) emptiestDomain() string {
	has := map[string]int{}
	for _, m := range s.members {
		if !m.deleting() {
			has[m.obj.Annotations[identity.FailureDomainLabel]]++
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
