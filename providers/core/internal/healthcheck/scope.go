package healthcheck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles MachineHealthChecks.
type Controller struct {
	step.Clients
	workloads Workloads
	// external reads the templates and requests of external remediation, and requestKinds watches the requests.
	external     external.Reader
	requestKinds *external.Watcher
	memory       *memory
	suspects     *suspects
	fleet        *fleet
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	check *clusterv1.MachineHealthCheck
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// plan is nil until the Machines were diagnosed.
	plan *diagnosis.Plan
	// unreachable is why the Nodes are unknown; nil if they are known, or not needed.
	unreachable error
	// requests are the external remediation requests in the cache, by name.
	requests map[string]*unstructured.Unstructured
	// template is the template of these requests; nil if it does not exist.
	template *unstructured.Unstructured
}

func (c *Controller) scope(ctx context.Context, h *clusterv1.MachineHealthCheck) (*scope, error) {
	s := &scope{check: h}
	var err error
	s.cluster, err = ownership.ClusterNamed(ctx, c.Client, s.key())
	return s, err
}

// key returns the key of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.check.Namespace, Name: s.check.Spec.ClusterName}
}
