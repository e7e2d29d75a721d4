// Package hosts is an infrastructure provider for machines that exist already, which it reaches over SSH.
package hosts

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/cluster"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/host"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/machine"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// NewComponent is the provider's manager.
func NewComponent() manager.Component {
	return manager.Component{
		Name:             "hosts-manager",
		Purpose:          "The hosts infrastructure provider: gives machines that exist already to clusters, over SSH.",
		Namespace:        "hosts-system",
		LeaderElectionID: "hosts-controller-leader-election",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, hostsv1.AddToScheme, hostsv1alpha2.AddToScheme},
		AddConverted:     conversion.AddToScheme,
		Conversions:      conversions(),
		Cache:            func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService:   "hosts-webhook-service",
		Definitions:      labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "infrastructure-hosts"}),
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			clients := step.ClientsOf(mgr, "hosts-manager", watch.Filter(env.WatchFilter))
			return errors.Join(webhook.Register(mgr), step.Add(ctx, mgr, clients,
				(&host.Controller{Clients: clients}).Declared(),
				(&cluster.Controller{Clients: clients}).Declared(),
				(&machine.Controller{Clients: clients}).Declared(),
			))
		},
	}
}

// conversions has the kinds with several versions, besides those of Cluster API.
func conversions() *conversion.Registry {
	hub, spoke := hostsv1alpha2.GroupVersion, hostsv1.GroupVersion
	return conversion.New(nil,
		conversion.Infrastructure[hostsv1alpha2.HostCluster, hostsv1.HostCluster](hub, spoke, "HostCluster"),
		conversion.Infrastructure[hostsv1alpha2.HostClusterTemplate, hostsv1.HostClusterTemplate](hub, spoke, "HostClusterTemplate"),
	)
}
