package machinepool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/identity"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/node"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
)

// ordinalAnnotation is the ordinal that the name of a DockerMachine derives from. On a DockerMachinePool, it is the ordinal of the next
// one: ordinals are not used again, because a Node may outlive its machine.
const ordinalAnnotation = "docker.cluster.x-k8s.io/pool-ordinal"

// member is a machine of a pool.
type member struct {
	obj *dockerv1.DockerMachine
	// machine is nil until the core provider has created it.
	machine *clusterv1.Machine
}

// membersOf reads the machines of a pool, sorted by name.
func membersOf(ctx context.Context, from client.Reader, pool *dockerv1.DockerMachinePool) ([]member, error) {
	in := []client.ListOption{client.InNamespace(pool.Namespace)}
	if cluster := pool.Labels[clusterv1.ClusterNameLabel]; cluster != "" {
		in = append(in, client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	}
	owned := &dockerv1.DockerMachineList{}
	if err := from.List(ctx, owned, in...); err != nil {
		return nil, fmt.Errorf("listing the DockerMachines of DockerMachinePool %s: %w", pool.Name, err)
	}
	var all []member
	for i := range owned.Items {
		if ownership.Has(&owned.Items[i], pool) {
			all = append(all, member{obj: &owned.Items[i]})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := from.List(ctx, machines, append(in, client.HasLabels{clusterv1.MachinePoolNameLabel})...); err != nil {
		return nil, fmt.Errorf("listing the Machines of DockerMachinePool %s: %w", pool.Name, err)
	}
	byName := map[string]*clusterv1.Machine{}
	for i, m := range machines.Items {
		if m.Spec.InfrastructureRef.Kind == node.Kind {
			byName[m.Spec.InfrastructureRef.Name] = &machines.Items[i]
		}
	}
	for i := range all {
		all[i].machine = byName[all[i].obj.Name]
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.obj.Name, b.obj.Name) })
	return all, nil
}

// joined reports whether the Node of the machine joined the cluster, and its container was not removed since.
func (m member) joined() bool {
	container := condition.Get(m.obj, dockerv1.ContainerProvisionedCondition)
	return m.obj.Status.Ready && (container == nil || container.Reason != dockerv1.ContainerDeletedReason)
}

// available reports whether the Node of the machine is ready, too.
func (m member) available() bool {
	return m.joined() && m.machine != nil && condition.IsTrue(m.machine, clusterv1.MachineNodeHealthyCondition)
}

func (m member) deleting() bool {
	return !m.obj.DeletionTimestamp.IsZero() || m.machine != nil && !m.machine.DeletionTimestamp.IsZero()
}

func (m member) marked() bool {
	_, marked := m.obj.Annotations[clusterv1.DeleteMachineAnnotation]
	if m.machine != nil && !marked {
		_, marked = m.machine.Annotations[clusterv1.DeleteMachineAnnotation]
	}
	return marked
}

// ordinal returns the ordinal of the machine. ok is false if an earlier version of the product created it.
func ordinal(obj client.Object) (n int, ok bool) {
	n, err := strconv.Atoi(obj.GetAnnotations()[ordinalAnnotation])
	return n, err == nil && n >= 0
}

// outdated returns why a machine must be replaced; empty if it is up to date.
//
// Cluster API v1.7 did not record all of the template in the DockerMachines that it created. Of these, only the image is compared, so
// that an upgrade of the management cluster replaces no machines.
func (m member) outdated(pool *clusterv1.MachinePool, template *dockerv1.DockerMachinePoolMachineTemplate) string {
	if m.machine != nil && m.machine.Spec.Version != nil && pool.Spec.Template.Spec.Version != nil {
		have, want := *m.machine.Spec.Version, *pool.Spec.Template.Spec.Version
		if strings.TrimPrefix(have, "v") != strings.TrimPrefix(want, "v") {
			return fmt.Sprintf("its version is %s instead of %s", have, want)
		}
	}
	if m.obj.Spec.CustomImage != template.CustomImage {
		return fmt.Sprintf("its image is %q instead of %q", m.obj.Spec.CustomImage, template.CustomImage)
	}
	if _, ours := ordinal(m.obj); !ours {
		return ""
	}
	switch {
	case !equality.Semantic.DeepEqual(m.obj.Spec.PreLoadImages, template.PreLoadImages):
		return "spec.template.preLoadImages of the pool has changed"
	case !equality.Semantic.DeepEqual(m.obj.Spec.ExtraMounts, template.ExtraMounts):
		return "spec.template.extraMounts of the pool has changed"
	}
	domain := m.obj.Annotations[identity.FailureDomainLabel]
	if domains := pool.Spec.FailureDomains; domain != "" && len(domains) > 0 && !slices.Contains(domains, domain) {
		return fmt.Sprintf("the pool does not have its failure domain %q", domain)
	}
	return ""
}

// external reports whether someone else creates and deletes the machines of the pool, once it has its first ones.
func (s *scope) external() bool {
	by, external := s.pool.Annotations[clusterv1.ReplicasManagedByAnnotation]
	_, created := ordinal(s.obj)
	return external && by != "false" && (created || len(s.members) > 0)
}

// replicas returns how many machines the pool must have: those that it has, if they are managed externally.
func (s *scope) replicas() int {
	if !s.external() {
		return int(ptr.Deref(s.pool.Spec.Replicas, 1))
	}
	return len(slices.DeleteFunc(slices.Clone(s.members), member.deleting))
}

// plan returns the next changes of the pool.
func (s *scope) plan() plan {
	if s.external() || !s.pool.DeletionTimestamp.IsZero() || !s.cluster.DeletionTimestamp.IsZero() {
		return plan{} // In deletion, all machines are about to be deleted.
	}
	all := make([]instance, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, instance{
			name: m.obj.Name, created: m.obj.CreationTimestamp.Time, joined: m.joined(), available: m.available(),
			outdated: m.outdated(s.pool, &s.obj.Spec.Template), marked: m.marked(), deleting: m.deleting(),
		})
	}
	return next(s.replicas(), all)
}
