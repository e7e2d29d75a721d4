package plan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// stages returns the changes of all desired objects, in the order in which they are applied.
func (c *comparison) stages(ctx context.Context) ([][]Change, error) {
	ordered, err := c.ordered()
	if err != nil {
		return nil, err
	}
	var stages [][]Change
	for _, objects := range ordered {
		var stage []Change
		for _, object := range objects {
			change, err := c.change(ctx, object)
			if err != nil {
				return nil, err
			}
			stage = append(stage, change)
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// ordered returns the desired objects in stages: templates and infrastructure cluster, workers, then health checks and control
// plane. Those on hold are left out.
func (c *comparison) ordered() ([][]*unstructured.Unstructured, error) {
	first := []*unstructured.Unstructured{c.want.InfrastructureCluster}
	if c.want.ControlPlaneMachines != nil && !c.want.ControlPlaneOnHold {
		first = append(first, c.want.ControlPlaneMachines)
	}
	var workers, healthChecks []runtime.Object
	for _, w := range c.want.Workers {
		if w.OnHold {
			continue
		}
		first = append(first, w.Bootstrap, w.Infrastructure)
		workers = append(workers, w.Object())
		if w.HealthCheck != nil {
			healthChecks = append(healthChecks, w.HealthCheck)
		}
	}
	if check := c.want.ControlPlaneHealthCheck; check != nil && !c.want.ControlPlaneOnHold {
		healthChecks = append(healthChecks, check)
	}
	second, err := allUnstructured(workers)
	if err != nil {
		return nil, err
	}
	third, err := allUnstructured(healthChecks)
	if err != nil {
		return nil, err
	}
	if !c.want.ControlPlaneOnHold {
		third = append(third, c.want.ControlPlane)
	}
	return [][]*unstructured.Unstructured{first, second, third}, nil
}

// change compares one desired object with the live one.
func (c *comparison) change(ctx context.Context, object *unstructured.Unstructured) (Change, error) {
	live, err := c.find(ctx, object.GroupVersionKind(), object.GetName())
	if err != nil {
		return Change{}, err
	}
	change := Change{Live: live, Desired: object}
	if object.GetKind() == clusterv1.MachineHealthCheckKind {
		if err := keepLimit(live, object); err != nil {
			return Change{}, fmt.Errorf("comparing %s: %w", Describe(object), err)
		}
	}
	if object == c.want.InfrastructureCluster {
		change.Options = leaveEndpoint()
	}
	if err := c.keepSpec(ctx, &change); err != nil {
		return Change{}, err
	}
	return change, c.checkOwnership(live)
}

// keepSpec makes a change leave the spec of a kept template as it is: at most its metadata is applied.
func (c *comparison) keepSpec(ctx context.Context, change *Change) error {
	diff, kept := c.kept[change.Desired]
	if !kept {
		return nil
	}
	if len(diff.Metadata) == 0 {
		change.Kept = true
		return nil
	}
	metadataOnly, err := c.Compare.Keep(ctx, change.Live, change.Desired)
	if err != nil {
		return err
	}
	change.Desired = metadataOnly
	return nil
}

// leaveEndpoint makes an apply leave the endpoint of an infrastructure cluster to its provider, unless the class sets it.
func leaveEndpoint() []ssa.Option {
	return []ssa.Option{ssa.LeaveZero(contract.ControlPlaneEndpointPaths()...)}
}
