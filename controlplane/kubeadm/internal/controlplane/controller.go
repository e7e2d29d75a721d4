package controlplane

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/provider/step"
)

// FieldManager is under what name this controller writes Machines and what belongs to them.
const FieldManager = "capi-kubeadmcontrolplane"

// Controller reconciles KubeadmControlPlanes.
type Controller struct {
	// Outside writes as FieldManager.
	step.Outside
	// Secrets reads the Secrets of clusters from the cache, where one that is missing costs no request: a SecretReader.
	Secrets client.Reader
	// External gets infrastructure templates and machines.
	External external.Reader
	// Workloads connects to workload clusters.
	Workloads Workloads
	// MachinePools says that the kind is in use.
	MachinePools bool
	// Keys generates the keys of certificates; nil: of the default algorithm, when they are needed.
	Keys *pki.Keys

	unreachable grace
	pauses      pauses
	maintained  memory
	// kubeconfigs are versions of kubeconfig and certificate authority that were found to belong together.
	kubeconfigs memory
}

// declared is how a control plane is brought to what its spec asks for: certificates, Machines, a workload cluster that works.
func (c *Controller) declared() step.Controller[*controlplanev1.KubeadmControlPlane, *scope] {
	return step.Controller[*controlplanev1.KubeadmControlPlane, *scope]{
		Name: "kubeadmcontrolplane",
		New:  func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		Paused: func(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (bool, error) {
			cluster, err := OwnerCluster(ctx, c.Client, kcp)
			return cluster != nil && cluster.Spec.Paused, err
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", c.owned),
			step.Do("own", c.own),                       // finalizer, label; the infrastructure template belongs to the Cluster
			step.Do("infrastructure", c.infrastructure), // waits for the Cluster's infrastructure
			step.All(
				provide(c),
				step.Do("complete", c.complete),
				step.Do("sync", c.sync),
				operate(c),
			),
		},
		Deletion:   []step.Step[*scope]{step.Do("cluster", c.owned), step.Do("delete", c.delete)},
		Report:     []step.Step[*scope]{step.Do("report", c.report)},
		Conditions: conditions(),
		Progress:   progress(),
		Observed: func(kcp *controlplanev1.KubeadmControlPlane, generation int64) {
			if kcp.Status.Selector != "" { // before there is anything to report, this alone is not worth a write
				kcp.Status.ObservedGeneration = generation
			}
		},
	}
}

// provide makes what Machines need before there can be one.
func provide(c *Controller) step.Step[*scope] {
	return step.InOrder(
		step.Do("certificates", c.certificates).Sets(controlplanev1.CertificatesAvailableCondition), // CAs and the service account key
		step.Do("endpoint", c.endpoint),     // waits for the address of the API server
		step.Do("kubeconfig", c.kubeconfig), // made, and made anew before it expires
		step.Do("adopt", c.adopt),           // control plane Machines without an owner
		step.Do("provided", provided),
	)
}

// operate looks after the workload cluster and its Machines, also if something else failed; their number changes only
// if all that Machines need is there.
func operate(c *Controller) step.Step[*scope] {
	return step.All(
		step.Do("connect", c.connect),         // the workload cluster, as far as it can be reached
		step.Do("initialised", c.initialised), // whether kubeadm init has completed
		step.Do("stranded", c.stranded),       // a cluster that lost all its Machines is not brought up again
		step.Do("inspect", c.inspect),         // health of components and etcd members, as conditions of Machines
		step.Do("terminate", c.terminate),     // etcd members of Machines that are being deleted, then the Machines
		step.Do("prune", c.prune),             // etcd members that no machine stands behind
		step.InOrder(
			step.When(func(s *scope) bool { return s.provided },
				step.Do("remediate", c.remediate), // Machines that health checks found unhealthy
				step.Do("act", c.act),             // the next action: initialise, scale up, scale down
			),
			step.Do("maintain", c.maintain), // RBAC, kube-proxy, CoreDNS, expiry of certificates
		),
	)
}

// owned waits for the Cluster to own the control plane.
func (c *Controller) owned(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster == nil {
		return step.Wait("the Cluster to own it"), nil
	}
	return step.Done(), nil
}

// provided is the end of provide.
func provided(_ context.Context, s *scope) (step.Result, error) {
	s.provided = true
	return step.Done(), nil
}

// memory remembers, per control plane, what was last done to its workload cluster, so that it is not looked at again
// as long as nothing changed. Losing it costs a few reads.
type memory struct {
	mu   sync.Mutex
	done map[types.UID]string
}

func (m *memory) is(uid types.UID, what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[uid] == what
}

func (m *memory) set(uid types.UID, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil {
		m.done = map[types.UID]string{}
	}
	m.done[uid] = what
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.done, uid)
}
