package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Controller reconciles HostClusters.
type Controller struct{ step.Clients }

// Declared returns the controller. It ignores HostClusters that are managed externally.
func (c *Controller) Declared() step.Controller[*hostsv1alpha2.HostCluster, *hostsv1alpha2.HostCluster] {
	ours := func(obj *hostsv1alpha2.HostCluster) bool { return !ownership.ManagedExternally(obj) }
	return step.Controller[*hostsv1alpha2.HostCluster, *hostsv1alpha2.HostCluster]{
		Name: "hostcluster",
		New:  func() *hostsv1alpha2.HostCluster { return &hostsv1alpha2.HostCluster{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, watch.Infrastructure("HostCluster"),
				watch.Cluster(watch.Paused, watch.Endpoint, watch.InfrastructureRef)),
			step.Mapped(&hostsv1.Host{}, c.ofHost, predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})),
		},
		Paused: ownership.PausedByCluster[*hostsv1alpha2.HostCluster](c.Client),
		Scope:  step.Self[*hostsv1alpha2.HostCluster],
		Steps:  []step.Step[*hostsv1alpha2.HostCluster]{step.When(ours, step.Do("endpoint", c.endpoint).Sets(clusterv1.ReadyV1Beta1Condition))},
		Reports: func(obj *hostsv1alpha2.HostCluster) []metav1.Condition {
			return condition.Metav1(obj.GetV1Beta1Conditions(), obj.Generation)
		},
	}
}

func (c *Controller) ofHost(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &hostsv1alpha2.HostClusterList{}, client.InNamespace(obj.GetNamespace()))
}
