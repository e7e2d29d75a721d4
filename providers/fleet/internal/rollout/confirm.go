package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm reads the objects of Clusters that report that their change is complete: what a Cluster reports of them may be older than its
// change. These are three or four requests for each Cluster and change.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	for _, m := range s.members {
		if one := (&wave.Cluster{Entry: *m.entry, Observation: m.seen}); !one.Claims() {
			continue
		}
		missing, err := c.missing(ctx, m.cluster)
		if err != nil {
			return step.Result{}, fmt.Errorf("confirming the change of Cluster %s: %w", m.cluster.Name, err)
		}
		m.seen.Confirmed, m.seen.Unconfirmed = missing == "", missing
		s.unconfirmed = s.unconfirmed || missing != ""
	}
	return step.Done(), nil
}

// missing returns what is not up to date in a Cluster; empty if everything is.
func (c *Controller) missing(ctx context.Context, cached *clusterv1.Cluster) (string, error) {
	cluster := &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(cached), cluster); err != nil {
		return "", err
	}
	if cluster.Generation != cached.Generation || cluster.UID != cached.UID {
		return "the cache does not show its latest version", nil
	}
	for _, find := range []func(context.Context, *clusterv1.Cluster) (string, error){c.controlPlane, c.deployments, c.pools, c.deletions} {
		if missing, err := find(ctx, cluster); missing != "" || err != nil {
			return missing, err
		}
	}
	return "", nil
}

// controlPlane returns what is missing of the control plane.
func (c *Controller) controlPlane(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	ref := cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return "", nil
	}
	reader := external.Reader{Client: c.Live, Versions: contract.APIVersions{Reader: c.Live}}
	o, err := reader.Object(ctx, &ref, cluster.Namespace)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name), nil
	}
	if err != nil {
		return "", err
	}
	if observed, ok := o.ObservedGeneration(); ok && observed < o.GetGeneration() {
		return fmt.Sprintf("the controller of %s %s has not seen its latest version", ref.Kind, ref.Name), nil
	}
	plane := contract.ControlPlaneOf(o)
	if v, err := plane.Version(); err != nil || v != nil && *v != cluster.Spec.Topology.Version {
		return fmt.Sprintf("%s %s does not have version %s yet", ref.Kind, ref.Name, cluster.Spec.Topology.Version), err
	}
	if upgrading, err := plane.IsUpgrading(); upgrading || err != nil {
		return fmt.Sprintf("%s %s is upgrading", ref.Kind, ref.Name), err
	}
	if replicas, err := plane.Replicas(); replicas == nil || err != nil {
		return "", err
	}
	if scaling, err := plane.IsScaling(); scaling || err != nil {
		return fmt.Sprintf("%s %s does not have all replicas up to date and ready", ref.Kind, ref.Name), err
	}
	return "", nil
}

// deployments returns what is missing of MachineDeployments.
func (c *Controller) deployments(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	list := &clusterv1.MachineDeploymentList{}
	if err := c.Live.List(ctx, list, of(cluster)...); err != nil {
		return "", fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range list.Items {
		md := &list.Items[i]
		want, have := ptr.Deref(md.Spec.Replicas, 1), ptr.Deref(md.Status.Replicas, 0)
		switch updated := updatedReplicas(md); {
		case !md.DeletionTimestamp.IsZero():
			return fmt.Sprintf("MachineDeployment %s is being deleted", md.Name), nil
		case md.Status.ObservedGeneration < md.Generation:
			return fmt.Sprintf("the controller of MachineDeployment %s has not seen its latest version", md.Name), nil
		case have != want || updated != want:
			return fmt.Sprintf("MachineDeployment %s has %d Machines, %d of them up to date, instead of %d", md.Name, have, updated, want), nil
		}
	}
	return "", nil
}

// updatedReplicas returns how many Machines are up to date. The counter of v1beta1 is never written late.
func updatedReplicas(md *clusterv1.MachineDeployment) int32 {
	if d := md.Status.Deprecated; d != nil && d.V1Beta1 != nil && d.V1Beta1.UpdatedReplicas != nil {
		return *d.V1Beta1.UpdatedReplicas
	}
	return ptr.Deref(md.Status.UpToDateReplicas, 0)
}

// pools returns what is missing of MachinePools, whose infrastructure says nothing about versions of machines.
func (c *Controller) pools(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	list := &clusterv1.MachinePoolList{}
	if err := c.Live.List(ctx, list, of(cluster)...); err != nil {
		return "", fmt.Errorf("listing MachinePools: %w", err)
	}
	for i := range list.Items {
		mp := &list.Items[i]
		want, have := ptr.Deref(mp.Spec.Replicas, 1), ptr.Deref(mp.Status.Replicas, 0)
		switch {
		case mp.Status.ObservedGeneration < mp.Generation:
			return fmt.Sprintf("the controller of MachinePool %s has not seen its latest version", mp.Name), nil
		case have != want:
			return fmt.Sprintf("MachinePool %s has %d machines instead of %d", mp.Name, have, want), nil
		}
	}
	return "", nil
}

// deletions returns a Machine that is still being deleted: a change is complete when the old Machines are gone.
func (c *Controller) deletions(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := c.Live.List(ctx, list, of(cluster)...); err != nil {
		return "", fmt.Errorf("listing Machines: %w", err)
	}
	for i := range list.Items {
		if !list.Items[i].DeletionTimestamp.IsZero() {
			return fmt.Sprintf("Machine %s is being deleted", list.Items[i].Name), nil
		}
	}
	return "", nil
}

func of(cluster *clusterv1.Cluster) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
}
