package controlplane

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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
	// Client reads from the manager's cache and writes.
	Client client.Client
	// Live reads past the cache: after conflicts, and where acting on an old copy could do harm.
	Live client.Reader
	// Secrets reads the Secrets of clusters from the cache, where one that is missing costs no request: a SecretReader.
	Secrets client.Reader
	// External gets infrastructure templates and machines.
	External external.Reader
	// Workloads connects to workload clusters.
	Workloads Workloads
	// MachinePools says that the kind is in use.
	MachinePools bool
	Clock        clock.PassiveClock
	// Keys generates the keys of certificates; nil: of the default algorithm, when they are needed.
	Keys *pki.Keys

	unreachable grace
	pauses      pauses
	maintained  memory
	// kubeconfigs are versions of kubeconfig and certificate authority that were found to belong together.
	kubeconfigs memory
}

// Reconcile brings a control plane to what its spec asks for: certificates, Machines, a workload cluster that works.
func (c *Controller) Reconcile(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (step.Result, error) {
	s, err := c.scope(ctx, kcp)
	if err != nil {
		return step.Result{}, err
	}
	if s == nil {
		return step.Wait("the Cluster to own it"), nil
	}
	if kcp.DeletionTimestamp != nil {
		return step.Run(ctx, s, c.delete)
	}
	result, err := step.Run(ctx, s,
		c.own,            // finalizer, label; the infrastructure template belongs to the Cluster
		c.infrastructure, // waits for the Cluster's infrastructure
		step.All(c.provide, c.complete, c.sync, c.operate),
	)
	c.report(ctx, s)
	return result, err
}

// provide makes what Machines need before there can be one.
func (c *Controller) provide(ctx context.Context, s *scope) (step.Result, error) {
	return step.Run(ctx, s,
		c.certificates, // certificate authorities and the service account key
		c.endpoint,     // waits for the address of the API server
		c.kubeconfig,   // made, and made anew before it expires
		c.adopt,        // control plane Machines without an owner
		s.isProvided,
	)
}

// operate looks after the workload cluster and its Machines, also if something else failed; their number changes only
// if all that Machines need is there.
func (c *Controller) operate(ctx context.Context, s *scope) (step.Result, error) {
	return step.All(
		c.connect,     // the workload cluster, as far as it can be reached
		c.initialised, // whether kubeadm init has completed
		c.stranded,    // a cluster that lost all its Machines is not brought up again
		c.inspect,     // health of components and etcd members, as conditions of Machines
		c.terminate,   // etcd members of Machines that are being deleted, then the Machines
		c.prune,       // etcd members that no machine stands behind
		c.change,
	)(ctx, s)
}

// change takes what changes the number of Machines, once all that they need is there, and then maintains the rest.
func (c *Controller) change(ctx context.Context, s *scope) (step.Result, error) {
	if !s.provided {
		return c.maintain(ctx, s)
	}
	return step.Run(ctx, s,
		c.remediate, // Machines that health checks found unhealthy
		c.act,       // the next action: initialise, scale up, scale down
		c.maintain,  // RBAC, kube-proxy, CoreDNS, expiry of certificates
	)
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
