// Package webhook defaults and validates the kinds of the core provider, and IPAddresses and IPAddressClaims, whose controllers are
// those of IPAM providers: one file and one type per kind.
//
// The rules for topologies are in the topology packages (check, variables, patches). This package decides which of them apply to
// a request, and reads what they require: for a ClusterClass the Clusters that use it, for a Cluster the class, and for an upgrade
// the control plane and the workers. A write that does not change a Cluster's topology reads only the class, from the cache.
//
// The file rules.go has the rules that Machines share with the kinds that create Machines from a template. A rule of a single kind
// belongs to the file of that kind. The file older.go has the defaults and rules of what only v1beta1 can express.
package webhook

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// Options configure the webhooks.
type Options struct {
	// Reader reads ClusterClasses, MachineDeployments, Machines, MachinePools and IPAddressClaims, and lists Clusters by their class:
	// the manager's cache, indexed with usage.Index.
	Reader client.Reader
	// Object returns the object of a reference in a Cluster (external.Reader). It is called for control planes before an
	// upgrade.
	Object func(ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string) (contract.Object, error)
	// Workload returns a reader of a Cluster's Nodes. It is called before an upgrade of a Cluster with MachinePools.
	Workload func(ctx context.Context, cluster types.NamespacedName) (client.Reader, error)
	// Clock is used to wait for a class; nil means the real clock.
	Clock clock.Clock
	// ClusterResourceSet and the others are the feature gates with these names.
	ClusterResourceSet, ClusterTopology, MachinePool, MachineSetPreflightChecks, MachineTaintPropagation, RuntimeSDK bool
	// ClusterTopologyWorkerVersionPinning is the feature gate with this name.
	ClusterTopologyWorkerVersionPinning bool
}

// Register adds the webhooks of all kinds to a manager.
func Register(mgr ctrl.Manager, o Options) error {
	cluster, err := NewCluster(o)
	if err != nil {
		return err
	}
	class := NewClusterClass(o)
	taints := o.MachineTaintPropagation
	set, pool := MachineSet{Preflight: o.MachineSetPreflightChecks, Taints: taints}, MachinePool{Enabled: o.MachinePool, Taints: taints}
	machine, deployment := Machine{Taints: taints}, MachineDeployment{Taints: taints}
	resourceSet, binding := ClusterResourceSet{Enabled: o.ClusterResourceSet}, ClusterResourceSetBinding{Enabled: o.ClusterResourceSet}
	config := ExtensionConfig{Enabled: o.RuntimeSDK}
	return errors.Join(
		webhooks.Register(mgr, &clusterv1.Cluster{}, cluster, cluster, olderCluster()),
		webhooks.Register(mgr, &clusterv1.ClusterClass{}, class, class, olderClusterClass()),
		webhooks.Register(mgr, &clusterv1.Machine{}, machine, machine, olderMachine()),
		webhooks.Register(mgr, &clusterv1.MachineSet{}, set, set, olderMachineSet()),
		webhooks.Register(mgr, &clusterv1.MachineDeployment{}, deployment, deployment, olderMachineDeployment()),
		webhooks.Register(mgr, &clusterv1.MachinePool{}, pool, pool, olderMachinePool()),
		webhooks.Register(mgr, &clusterv1.MachineHealthCheck{}, MachineHealthCheck{}, MachineHealthCheck{}, olderMachineHealthCheck()),
		webhooks.Register(mgr, &clusterv1.MachineDrainRule{}, nil, drainRuleValidator()),
		webhooks.Register(mgr, &ipamv1.IPAddressClaim{}, nil, claimValidator()),
		webhooks.Register(mgr, &ipamv1.IPAddress{}, nil, IPAddress{Claims: o.Reader}.validator(), olderIPAddress(), oldestIPAddress()),
		webhooks.Register(mgr, &addonsv1.ClusterResourceSet{}, resourceSet, resourceSet.validator()),
		webhooks.Register(mgr, &addonsv1.ClusterResourceSetBinding{}, nil, binding.validator()),
		webhooks.Register(mgr, &runtimev1.ExtensionConfig{}, config, config.validator(), olderExtensionConfig()),
	)
}
