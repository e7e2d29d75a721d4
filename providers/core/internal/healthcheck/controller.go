package healthcheck

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Clusters connects to workload clusters. It must cache Nodes.
	Clusters *remote.Clusters
}

// Controller reconciles MachineHealthChecks.
type Controller struct {
	step.Outside
	workloads Workloads
	// external reads the templates and requests of external remediation, and requestKinds watches the requests.
	external     external.Reader
	requestKinds *external.Watcher
	memory       *memory
	suspects     *suspects
	// visibilityTimeout is how long to wait until the cache has the marked Machines.
	visibilityTimeout time.Duration
}

// Setup adds the controller to a manager. It requires the indexes of the Machine controller.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.OutsideOf(mgr, "machinehealthcheck-controller", o.Filter), o.Clusters)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = []step.Watch{
		step.Mapped(&clusterv1.Machine{}, c.ofMachine, machineChanges()),
		step.Mapped(&clusterv1.Cluster{}, c.ofCluster,
			watch.Cluster(watch.Paused, watch.Deleting, watch.InfrastructureReady, watch.ControlPlaneInitialized)),
		step.From(o.Clusters.Source(remote.Events{
			Connection: c.ofConnection,
			Watches:    []remote.Watch{{Object: &corev1.Node{}, Requests: c.ofNode, Changed: nodeChanged}},
		})),
	}
	built, err := declared.Add(ctx, mgr, c.Outside)
	if err != nil {
		return err
	}
	c.requestKinds = external.NewWatcher(built, mgr.GetCache())
	return nil
}

// newController returns a Controller without watches of requests.
func newController(outside step.Outside, workloads Workloads) *Controller {
	return &Controller{
		Outside: outside, workloads: workloads, memory: newMemory(), suspects: newSuspects(), visibilityTimeout: visibilityTimeout,
		external: external.Reader{Client: outside.Client, Versions: contract.APIVersions{Reader: outside.Client}},
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*clusterv1.MachineHealthCheck, *scope] {
	return step.Controller[*clusterv1.MachineHealthCheck, *scope]{
		Name:    "machinehealthcheck",
		New:     func() *clusterv1.MachineHealthCheck { return &clusterv1.MachineHealthCheck{} },
		Paused:  c.clusterPaused,
		Indexes: indexes(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", adopt),
			step.Do("diagnose", c.diagnose),
			step.Do("confirm", c.confirm),
			step.All(
				step.Do("mark", c.mark),
				step.Do("request", c.request),
			),
		},
		Report:     []step.Step[*scope]{step.Do("status", c.status)},
		ErrorEvent: "ReconcileError",
		Observed: func(h *clusterv1.MachineHealthCheck, g int64) {
			if reported(h) { // While the first counters are held back, this is no reason for a write.
				h.Status.ObservedGeneration = g
			}
		},
		// While a cluster is being created, most first results change within moments.
		Progress: &step.Progress{
			First:     []string{"expectedMachines", "currentHealthy", "remediationsAllowed", "targets"},
			FirstTrue: []clusterv1.ConditionType{clusterv1.RemediationAllowedCondition},
			OnlyFirst: true,
		},
	}
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
	cluster, err := ownership.ClusterNamed(ctx, c.Client, s.key())
	s.cluster = cluster
	return s, err
}

func (c *Controller) clusterPaused(ctx context.Context, h *clusterv1.MachineHealthCheck) (bool, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: h.Namespace, Name: h.Spec.ClusterName})
	return cluster != nil && cluster.Spec.Paused, err
}

// key returns the key of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.check.Namespace, Name: s.check.Spec.ClusterName}
}

// exists waits for the Cluster, and stops if it is being deleted: its Machines are deleted with it.
func exists(_ context.Context, s *scope) (step.Result, error) {
	switch {
	case s.cluster == nil:
		return step.Wait("Cluster " + s.check.Spec.ClusterName + " (spec.clusterName) to exist"), nil
	case !s.cluster.DeletionTimestamp.IsZero():
		return step.Stop(), nil
	}
	return step.Done(), nil
}

// adopt adds the cluster name label and the Cluster as owner. Checks that a topology or admission created have them already.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	h := s.check
	if h.Labels == nil {
		h.Labels = map[string]string{}
	}
	h.Labels[clusterv1.ClusterNameLabel] = h.Spec.ClusterName
	h.OwnerReferences, _ = ownership.Ensure(h.OwnerReferences,
		ownership.Reference(s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false))
	return step.Checkpoint(), nil
}
