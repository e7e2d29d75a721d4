package restore

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// nodes deletes Nodes whose Machines no longer exist, with which their Pods go. Leases of leaders that no longer exist expire.
func (c *Controller) nodes(ctx context.Context, s *scope) (operation.Outcome, error) {
	node, err := c.node(ctx, s)
	if err != nil {
		return operation.Outcome{}, err
	}
	control, err := c.connect(ctx, s.clusterKey())
	if err != nil {
		return operation.Outcome{}, err
	}
	defer control.Close()
	list := &corev1.NodeList{}
	if err := control.Workload().List(ctx, list); err != nil {
		return operation.Outcome{}, fmt.Errorf("listing the Nodes of Cluster %s: %w", s.clusterKey(), err)
	}
	has, err := c.owners(ctx, s)
	if err != nil {
		return operation.Outcome{}, err
	}
	plan := planNodes(list.Items, has)
	for _, one := range plan.obsolete {
		if one.Name == node {
			return operation.Outcome{}, fmt.Errorf("Node %s is that of the restored Machine %s, which does not exist",
				node, s.restore.Status.MachineName)
		}
		if err := control.Workload().Delete(ctx, one, client.Preconditions{UID: &one.UID}); client.IgnoreNotFound(err) != nil {
			return operation.Outcome{}, fmt.Errorf("deleting Node %s: %w", one.Name, err)
		}
	}
	for _, note := range plan.notes() {
		s.warn(note)
	}
	return operation.Done(fmt.Sprintf("deleted %d Nodes of Machines that no longer exist: %s", len(plan.obsolete), names(plan.obsolete))), nil
}

// owners is what Nodes belong to.
type owners struct {
	cluster  types.NamespacedName
	machines []clusterv1.Machine
	pools    []clusterv1.MachinePool
	fenced   []fleetv1.FencedMachine
}

// owners reads what Nodes belong to, from the API server.
func (c *Controller) owners(ctx context.Context, s *scope) (owners, error) {
	of := []client.ListOption{
		client.InNamespace(s.restore.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.restore.Spec.ClusterName},
	}
	machines, pools := &clusterv1.MachineList{}, &clusterv1.MachinePoolList{}
	if err := c.Live.List(ctx, machines, of...); err != nil {
		return owners{}, fmt.Errorf("listing Machines: %w", err)
	}
	if err := c.Live.List(ctx, pools, client.InNamespace(s.restore.Namespace)); err != nil {
		return owners{}, fmt.Errorf("listing MachinePools: %w", err)
	}
	has := owners{cluster: s.clusterKey(), machines: machines.Items, fenced: s.restore.Status.FencedMachines}
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == s.restore.Spec.ClusterName {
			has.pools = append(has.pools, pools.Items[i])
		}
	}
	return has, nil
}

func names(nodes []*corev1.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	return strings.Join(all, ", ")
}
