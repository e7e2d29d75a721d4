package topologyplan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// poolRollouts returns the rollouts of MachinePools that may follow from changes of them, their bootstrap config or their infrastructure.
// The provider of the infrastructure decides about each.
func (p *prediction) poolRollouts(ctx context.Context, changes []Change) ([]Rollout, error) {
	pools := &clusterv1.MachinePoolList{}
	if err := p.List(ctx, pools, client.InNamespace(p.Namespace), inCluster(p.plan.Cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing MachinePools: %w", err)
	}
	var found []Rollout
	for i := range pools.Items {
		pool := &pools.Items[i]
		if reasons := poolReasons(pool, changes); len(reasons) > 0 {
			found = append(found, Rollout{
				Kind:    "MachinePool",
				Name:    pool.Name,
				Kept:    int(ptr.Deref(pool.Status.Replicas, 0)),
				Reasons: reasons,
				Unknown: true,
				Held:    pausedObject(pool.Annotations),
			})
		}
	}
	return found, nil
}

// poolReasons returns the fields that change in a pool or in the objects that it refers to, and that its machines are created from.
func poolReasons(pool *clusterv1.MachinePool, changes []Change) []string {
	template := &pool.Spec.Template.Spec
	var reasons []string
	for _, c := range changes {
		if c.Action != Modified {
			continue
		}
		kind, fields := "", c.Fields
		switch u := c.After; {
		case u.GetKind() == "MachinePool" && u.GetName() == pool.Name:
			fields = machineFields(fields)
		case refers(&template.Bootstrap.ConfigRef, u), refers(&template.InfrastructureRef, u):
			kind = u.GetKind() + " "
		default:
			continue
		}
		for _, field := range fields {
			if strings.HasPrefix(field, "spec.") {
				reasons = append(reasons, kind+field)
			}
		}
	}
	slices.Sort(reasons)
	return reasons
}

// machineFields returns those fields of a MachinePool that machines are created from.
func machineFields(fields []string) []string {
	return slices.DeleteFunc(templateFields(fields, "spec.failureDomains"), func(field string) bool {
		return field == templateSpec+"deletion" || strings.HasPrefix(field, templateSpec+"deletion.")
	})
}

// refers reports whether a reference is to an object.
func refers(ref *clusterv1.ContractVersionedObjectReference, u *unstructured.Unstructured) bool {
	return ref.Name == u.GetName() && ref.GroupKind() == u.GroupVersionKind().GroupKind()
}
