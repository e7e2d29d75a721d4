package scenario

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// ClusterName is the name of the Cluster under test of every run: runs differ in their namespace. It is that of recorded Clusters.
const ClusterName = "x"

// Size is the number of Machines of a Cluster.
type Size struct {
	ControlPlanes, Workers int
	// Pool is set if the workers are those of a MachinePool instead of a MachineDeployment.
	Pool bool
	// Hosted is set if the control plane has no Machines: ControlPlanes is 0.
	Hosted bool
}

// deployed returns the size of a Cluster with a MachineDeployment.
func deployed(controlPlanes, workers int) Size {
	return Size{ControlPlanes: controlPlanes, Workers: workers}
}

// Limits hold in every state from the start of the change to the end. Machines that are being deleted do not count.
type Limits struct {
	// MaxControlPlanes and MaxWorkers limit the number of Machines.
	MaxControlPlanes, MaxWorkers int
	// MinControlPlanes and MinWorkers are the minimum numbers of available Machines.
	MinControlPlanes, MinWorkers int
	// NewControlPlanes and NewWorkers limit how many Machines are created, including those that are deleted again.
	NewControlPlanes, NewWorkers int
	// Specs limits how many specs a Deployment of a provider has.
	Specs int
}

// Target is the environment of a run.
type Target struct {
	// Client is an administrator's, and bypasses the proxies.
	Client client.Client
	// Config is the same for other clients.
	Config *rest.Config
	// Namespace is the run's own.
	Namespace string
	// LastPort is the last port on which API servers of workload clusters may listen.
	LastPort int
	// Root is the root of the repository, DataDir the data directory of the API server.
	Root, DataDir string
	// Backups is the directory below which the directories of BackupStores are.
	Backups string
	// Start is the state of the namespace before the change.
	Start history.State
	// Releases is the folder of a repository with releases of all providers.
	Releases string
	// Until waits until all conditions are true in one state of the namespace.
	Until func(ctx context.Context, conditions ...Condition) error
}

// Change is an operation of a user. It is retried until it succeeds.
type Change func(ctx context.Context, t Target) error

// Condition returns nil if it is true in a state, and otherwise why not.
type Condition func(history.State) error

// Scenario is one operation on a Cluster.
type Scenario struct {
	// Name selects it on the command line.
	Name string
	// Prepare, if set, is made without faults before the Cluster exists.
	Prepare Change
	// Provider, if set, is called with every new state of the namespace, without faults, as a third-party controller.
	Provider func(ctx context.Context, t Target, now history.State) error
	// IPAM is set if the change is one of pools of addresses. Such a scenario has no Cluster.
	IPAM bool
	// Backups is set if the change is one of backups of the Cluster: the managers include that of the fleet provider.
	Backups bool
	// Restores is set if etcd is replaced once, by one with the data of a backup, which one more Machine initializes.
	Restores bool
	// Recovers is set if etcd is made of one survivor: without the members of Machines without power, whose infrastructure is deleted before.
	Recovers bool
	// Operator is set if the change is one of provider objects. Such a scenario has no Cluster, its managers are those that it installs, and
	// its world has the operator only.
	Operator bool
	// Braked is set if its world limits how many Clusters may have unhealthy Machines: MaxUnhealthyClusters.
	Braked bool
	// Prepared is true when what Prepare has made is complete. Nil: ClassReady.
	Prepared Condition
	// Probe, if set, is made again and again from the change to the end. It must never fail.
	Probe Change
	// Recreated are the names of objects whose change needs their deletion.
	Recreated []string
	// Discard deletes everything at the end, until Discarded is true. Nil: it deletes the Cluster.
	Discard   Change
	Discarded Condition
	// Hooks is set if the managers call the extension of package extension.
	Hooks bool
	// InPlace is set if an extension updates control plane Machines in place.
	InPlace bool
	// Words are the values that the extension's variable may have in the templates of the Cluster. Empty: its class has no external patch.
	Words []string
	// ExternalEtcd is set if etcd is not on the Cluster's machines.
	ExternalEtcd bool
	// Before is the size of the Cluster at the start. Nil: it does not exist.
	Before *Size
	// Recorded is set if the Cluster is one that another version of Cluster API has left, so that reference data are required.
	Recorded bool
	// Arrange, if set, is made without faults when the Cluster is ready in this size, or does not exist.
	Arrange Change
	// Change has the changes, which are made one immediately after another.
	Change []Change
	// Done are the conditions for the end.
	Done []Condition
	// Cause is the root cause that `clusterctl explain` reports at the end. Empty: it finds nothing.
	Cause explain.Reason
	// Limits hold at any time.
	Limits Limits
	// Deletes is set if the Cluster is deleted.
	Deletes bool
}

// All returns the scenarios.
func All() []Scenario {
	return slices.Concat(creations(), scalings(), rollouts(), chains(), remediations(), externalRemediations(), braked(), deletions(), pools(),
		resourceSets(), externalEtcd(), hosted(), managed(), failureDomains(), marked(), moved(), addresses(), hooked(), patched(),
		updatedInPlace(), turned(), takeovers(), backups(), operations(), operated())
}

// Definitions returns the CRDs of kinds that are not ours.
func Definitions() ([]*unstructured.Unstructured, error) {
	hosted, err := parse("hosted.yaml", hostedDefinitions)
	if err != nil {
		return nil, err
	}
	repairs, err := parse("repair.yaml", repairDefinitions)
	return append(hosted, repairs...), err
}

// Fleet returns the scenario of every Cluster of a fleet: a second worker is added.
func Fleet() Scenario {
	return scaling("fleet", deployed(1, 1), deployed(1, 2))
}

// Named returns the scenario with a name.
func Named(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

func creation(name string, s Size) Scenario {
	return Scenario{
		Name: name, Change: []Change{Create(s)}, Done: []Condition{Ready(s)},
		Limits: Limits{
			MaxControlPlanes: s.ControlPlanes, MaxWorkers: s.Workers,
			NewControlPlanes: s.ControlPlanes, NewWorkers: s.Workers,
		},
	}
}

func creations() []Scenario {
	return []Scenario{creation("create-1x1", deployed(1, 1)), creation("create-3x2", deployed(3, 2))}
}

func scalings() []Scenario {
	return []Scenario{
		scaling("control-plane-up", deployed(1, 1), deployed(3, 1)),
		scaling("control-plane-down", deployed(3, 1), deployed(1, 1)),
		scaling("workers-up", deployed(1, 3), deployed(1, 6)),
		scaling("workers-down", deployed(1, 5), deployed(1, 2)),
	}
}

func scaling(name string, from, to Size) Scenario {
	return Scenario{
		Name: name, Before: &from, Change: []Change{Resize(to)}, Done: []Condition{Ready(to)},
		Limits: Limits{
			MaxControlPlanes: max(from.ControlPlanes, to.ControlPlanes), MaxWorkers: max(from.Workers, to.Workers),
			MinControlPlanes: min(from.ControlPlanes, to.ControlPlanes), MinWorkers: min(from.Workers, to.Workers),
			NewControlPlanes: max(0, to.ControlPlanes-from.ControlPlanes), NewWorkers: max(0, to.Workers-from.Workers),
		},
	}
}

// rollout replaces this many Machines, one at a time.
func rollout(name string, s Size, change Change, controlPlanes, workers int, done ...Condition) Scenario {
	return Scenario{
		Name: name, Before: &s, Change: []Change{change}, Done: append(done, Ready(s)),
		Limits: Limits{
			MaxControlPlanes: s.ControlPlanes + min(controlPlanes, 1), MaxWorkers: s.Workers + min(workers, 1),
			MinControlPlanes: s.ControlPlanes, MinWorkers: s.Workers,
			NewControlPlanes: controlPlanes, NewWorkers: workers,
		},
	}
}

func rollouts() []Scenario {
	return []Scenario{
		rollout("upgrade-1x1", deployed(1, 1), Upgrade, 1, 1, Upgraded),
		rollout("upgrade-3x2", deployed(3, 2), Upgrade, 3, 2, Upgraded),
		rollout("rotate-workers", deployed(1, 3), RotateWorkers, 0, 3, Rotated("MachineDeployment")),
		rollout("rotate-control-plane", deployed(3, 1), RotateControlPlane, 3, 0, Rotated("KubeadmControlPlane")),
	}
}

func deletion(name string, s Size) Scenario {
	return Scenario{
		Name: name, Before: &s, Change: []Change{Delete}, Done: []Condition{Absent}, Deletes: true,
		Limits: Limits{MaxControlPlanes: s.ControlPlanes, MaxWorkers: s.Workers},
	}
}

func deletions() []Scenario {
	return []Scenario{deletion("delete-1x1", deployed(1, 1)), deletion("delete-3x2", deployed(3, 2))}
}
