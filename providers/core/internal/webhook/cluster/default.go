package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Default implements admission.Defaulter. Variables are defaulted at every write, so that variables added to the class are
// added to the Cluster with the next write. A class that cannot be used yet is not an error, because the topology controller
// defaults variables, too; Default waits for it only if the topology is new or changes.
func (w *Webhook) Default(ctx context.Context, cluster *clusterv1.Cluster) error {
	for _, ref := range []*corev1.ObjectReference{cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef} {
		if ref != nil && ref.Namespace == "" {
			ref.Namespace = cluster.Namespace
		}
	}
	topology := cluster.Spec.Topology
	if topology == nil {
		return nil
	}
	if topology.Version != "" && !strings.HasPrefix(topology.Version, "v") {
		topology.Version = "v" + topology.Version
	}
	if !w.options.ClusterTopology || topology.Class == "" || !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	old, err := oldCluster(ctx)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	changes := old == nil || !equality.Semantic.DeepEqual(old.Spec.Topology, topology)
	return w.defaultVariables(ctx, cluster, changes)
}

func (w *Webhook) defaultVariables(ctx context.Context, cluster *clusterv1.Cluster, changes bool) error {
	read := w.class
	if changes {
		read = w.waitForClass
	}
	found, err := read(ctx, cluster.GetClassKey())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if found.class == nil {
		return nil
	}
	definitions, err := w.compiled(found.class)
	if err != nil && !changes {
		return nil // the topology controller reports why the class cannot be used
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	path := field.NewPath("spec", "topology")
	errs := definitions.Default(cluster.Spec.Topology, path)
	if len(errs) == 0 {
		errs = definitions.Validate(cluster.Spec.Topology, path)
	}
	return invalid(cluster, errs)
}

// oldCluster returns the old object of an update request, nil for a creation.
func oldCluster(ctx context.Context) (*clusterv1.Cluster, error) {
	req, err := admission.RequestFromContext(ctx)
	if err != nil || len(req.OldObject.Raw) == 0 {
		return nil, nil // no request: called by a test or a library
	}
	old := &clusterv1.Cluster{}
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return nil, fmt.Errorf("decoding the old Cluster: %w", err)
	}
	return old, nil
}
