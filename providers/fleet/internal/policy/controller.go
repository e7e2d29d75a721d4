package policy

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of policies to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
}

// Controller reconciles EtcdBackupPolicies.
type Controller struct {
	step.Clients
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "etcdbackuppolicy-controller", o.Filter)}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.EtcdBackupPolicy, *scope] {
	return step.Controller[*fleetv1.EtcdBackupPolicy, *scope]{
		Name: "etcdbackuppolicy",
		New:  func() *fleetv1.EtcdBackupPolicy { return &fleetv1.EtcdBackupPolicy{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, c.inNamespace,
				predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(selectionChanges))),
			step.Mapped(&fleetv1.BackupStore{}, c.inNamespace, predicate.Or(watch.Created(), watch.Deleted())),
			step.Mapped(&fleetv1.EtcdBackup{}, ofBackup, predicate.Or(watch.Deleted(), watch.Updated(backupChanges))),
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("plan", c.plan),
			step.Do("create", c.create),
			step.Do("expire", c.expire),
		},
		Reports:  reports,
		Observed: func(p *fleetv1.EtcdBackupPolicy, g int64) { p.Status.ObservedGeneration = g },
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	policy *fleetv1.EtcdBackupPolicy
	// clusters are those that the policy selects, and backups those that it has created. They must not be changed.
	clusters []clusterv1.Cluster
	backups  []fleetv1.EtcdBackup
	// noStore is set if the BackupStore does not exist.
	noStore bool
	// invalid is what is wrong with the spec.
	invalid error
	plan    plan.Plan
}

// find returns the backup with a name; nil if it is not in the cache.
func (s *scope) find(name string) *fleetv1.EtcdBackup {
	for i := range s.backups {
		if s.backups[i].Name == name {
			return &s.backups[i]
		}
	}
	return nil
}

func (c *Controller) scope(ctx context.Context, policy *fleetv1.EtcdBackupPolicy) (*scope, error) {
	s := &scope{policy: policy}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.ClusterSelector)
	if err != nil {
		s.invalid = fmt.Errorf("spec.clusterSelector: %w", err)
		return s, nil
	}
	clusters := &clusterv1.ClusterList{}
	if err := c.Client.List(ctx, clusters, client.InNamespace(policy.Namespace),
		client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	s.clusters = clusters.Items
	backups := &fleetv1.EtcdBackupList{}
	own := labels.SelectorFromSet(labels.Set{fleetv1.PolicyLabel: policyLabel(policy.Name)})
	if err := c.Client.List(ctx, backups, client.InNamespace(policy.Namespace),
		client.MatchingLabelsSelector{Selector: own}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing EtcdBackups: %w", err)
	}
	s.backups = backups.Items
	store := &fleetv1.BackupStore{}
	err = c.Client.Get(ctx, client.ObjectKey{Namespace: policy.Namespace, Name: policy.Spec.StoreRef.Name}, store)
	if apierrors.IsNotFound(err) {
		s.noStore = true
		return s, nil
	}
	return s, err
}

// since returns when backups of a Cluster became possible; zero if they are not.
func since(c *clusterv1.Cluster) time.Time {
	initialized := report.Get(c, clusterv1.ClusterControlPlaneInitializedCondition)
	if !c.DeletionTimestamp.IsZero() || !ready(c) {
		return time.Time{}
	}
	if initialized == nil || initialized.Status != metav1.ConditionTrue {
		return c.CreationTimestamp.Time
	}
	return initialized.LastTransitionTime.Time
}

// ready reports whether a Cluster has a control plane.
func ready(c *clusterv1.Cluster) bool {
	return ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false) ||
		condition.IsTrue(c, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// selectionChanges reports whether a change of a Cluster changes which backups are made.
func selectionChanges(before, after *clusterv1.Cluster) bool {
	return !labels.Equals(before.Labels, after.Labels) || since(before).IsZero() != since(after).IsZero()
}

// backupChanges reports whether a change of a backup changes what its policy does: it ends, or is being deleted.
func backupChanges(before, after *fleetv1.EtcdBackup) bool {
	return before.Status.Phase != after.Status.Phase && after.Ended() ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

// inNamespace returns the policies in the namespace of an object.
func (c *Controller) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &fleetv1.EtcdBackupPolicyList{}, client.InNamespace(obj.GetNamespace()))
}

// ofBackup returns the policy that has created a backup.
func ofBackup(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetAnnotations()[fleetv1.PolicyLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}
