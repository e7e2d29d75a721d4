package config

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// kubeadmConfigKind is the kind that this package reconciles.
const kubeadmConfigKind = "KubeadmConfig"

// Workloads gives access to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// Clusters connects to workload clusters; tokens are made there.
	Clusters *remote.Clusters
	// TokenTTL is how long a bootstrap token lives.
	TokenTTL time.Duration
	// Keys generates the keys of clusters without a control plane object; the manager runs it.
	Keys *pki.Keys
}

// Controller reconciles KubeadmConfigs.
type Controller struct {
	step.Outside
	// cached reads Secrets from the cache alone: what is not there costs no request.
	cached    client.Reader
	workloads Workloads
	tokenTTL  time.Duration
	keys      *pki.Keys
	locks     locks
}

func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{bootstrapv1.DataSecretAvailableCondition, bootstrapv1.CertificatesAvailableCondition}}
}

// Setup adds the controller to a manager.
func Setup(_ context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Outside: step.From(mgr, "kubeadmconfig-controller", o.Filter), cached: mgr.GetCache(), workloads: o.Clusters, tokenTTL: o.TokenTTL, keys: o.Keys}
	runner := &step.Runner[*bootstrapv1.KubeadmConfig]{
		Outside:    c.Outside,
		New:        func() *bootstrapv1.KubeadmConfig { return &bootstrapv1.KubeadmConfig{} },
		Conditions: conditions(),
		Paused:     ownership.PausedByCluster[*bootstrapv1.KubeadmConfig](c.Client),
		Do:         c.Reconcile,
		Observed:   func(config *bootstrapv1.KubeadmConfig, g int64) { config.Status.ObservedGeneration = g },
		Progress:   &step.Progress{},
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("kubeadmconfig").
		For(&bootstrapv1.KubeadmConfig{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, o.Filter.Predicate())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(clusterMatters())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), builder.WithPredicates(watchfilter.Created())).
		WatchesRawSource(o.Clusters.Source(remote.Events{Connection: c.waitingFor})).
		WithOptions(step.Options(o.Concurrency)).
		Complete(runner)
	if err != nil {
		return fmt.Errorf("setting up the kubeadm config controller: %w", err)
	}
	return nil
}

// scope is what the steps work on.
type scope struct {
	config  *bootstrapv1.KubeadmConfig
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
}

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

func (s *scope) isControlPlane() bool {
	_, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (s *scope) initialized() bool {
	return condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedCondition)
}

// Reconcile makes the bootstrap data of the Machine that owns a config.
func (c *Controller) Reconcile(ctx context.Context, config *bootstrapv1.KubeadmConfig) (step.Result, error) {
	if !config.DeletionTimestamp.IsZero() {
		return step.Stop(), nil
	}
	s, result, err := c.scope(ctx, config)
	if err != nil || s == nil {
		return result, err
	}
	return step.Run(ctx, s, c.format, c.infrastructure, c.adopt, c.token, c.initialize, c.join)
}

// scope fetches the owner and its Cluster; nil when one of them is not there (yet): its creation wakes us.
func (c *Controller) scope(ctx context.Context, config *bootstrapv1.KubeadmConfig) (*scope, step.Result, error) {
	owner := metav1.GetControllerOf(config)
	if owner == nil || owner.Kind != clusterv1.MachineKind {
		return nil, step.Stop(), nil
	}
	machine := &clusterv1.Machine{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: owner.Name}, machine); err != nil {
		return nil, step.Stop(), client.IgnoreNotFound(err)
	}
	if machine.UID != owner.UID {
		// A Machine that was replaced by one of its name may show as a change, which does not wake us.
		return nil, step.WaitAtMost(backstop, "the Machine that owns it, which is not the one of that name"), nil
	}
	cluster := &clusterv1.Cluster{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: machine.Spec.ClusterName}, cluster); err != nil {
		return nil, step.Stop(), client.IgnoreNotFound(err)
	}
	return &scope{config: config, machine: machine, cluster: cluster}, step.Done(), nil
}

// format refuses what is not rendered, before anything is waited for.
func (c *Controller) format(_ context.Context, s *scope) (step.Result, error) {
	if s.config.Spec.Format != bootstrapv1.Ignition || s.config.Status.Ready || s.machine.Spec.Bootstrap.DataSecretName != nil {
		return step.Done(), nil
	}
	return step.Stop(), c.failed(s, mistake{fmt.Errorf("spec.format %q is accepted, but no data of that format can be made yet: use %q",
		bootstrapv1.Ignition, bootstrapv1.CloudConfig)})
}

// infrastructure waits until the cluster has an endpoint.
func (c *Controller) infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster.Status.InfrastructureReady {
		return step.Done(), nil
	}
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableCondition, clusterv1.ConditionSeverityInfo,
		bootstrapv1.WaitingForClusterInfrastructureReason, ""))
	return step.Wait("the infrastructure of Cluster " + s.cluster.Name), nil
}

// clusterMatters lets a Cluster's changes through that configs wait for.
func clusterMatters() predicate.Predicate {
	return watchfilter.Updated(func(before, after *clusterv1.Cluster) bool {
		return before.Spec.Paused != after.Spec.Paused ||
			before.Spec.ControlPlaneEndpoint != after.Spec.ControlPlaneEndpoint ||
			before.Status.InfrastructureReady != after.Status.InfrastructureReady ||
			condition.IsTrue(before, clusterv1.ControlPlaneInitializedCondition) != condition.IsTrue(after, clusterv1.ControlPlaneInitializedCondition)
	})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.configs(ctx, client.ObjectKeyFromObject(obj), func(*bootstrapv1.KubeadmConfig) bool { return true })
}

// waitingFor are the configs of a cluster that may need its API server for a token: those without data, and those whose
// machine has not joined, for its token may have expired while no manager ran.
func (c *Controller) waitingFor(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.configs(ctx, cluster, func(config *bootstrapv1.KubeadmConfig) bool {
		return !config.Status.Ready || !c.joined(ctx, config)
	})
}

// joined reports whether the machine of a config has a Node, as far as the cache tells.
func (c *Controller) joined(ctx context.Context, config *bootstrapv1.KubeadmConfig) bool {
	owner := metav1.GetControllerOf(config)
	if owner == nil || owner.Kind != clusterv1.MachineKind {
		return false
	}
	machine := &clusterv1.Machine{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: owner.Name}, machine)
	return err == nil && machine.Status.NodeRef != nil
}

func (c *Controller) configs(ctx context.Context, cluster types.NamespacedName, matters func(*bootstrapv1.KubeadmConfig) bool) []reconcile.Request {
	list := &bootstrapv1.KubeadmConfigList{}
	if err := c.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list KubeadmConfigs", "Cluster", cluster)
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if matters(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok || m.Spec.Bootstrap.ConfigRef == nil || m.Spec.Bootstrap.ConfigRef.Kind != kubeadmConfigKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}}}
}
