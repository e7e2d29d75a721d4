// Package lab brings the simulated cloud and its servers together: it opens the workload cluster that an
// InMemoryCluster stands for, the same after a restart.
//
// When a cluster is opened and what happens in it, the controllers decide.
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

const (
	// firstPort and lastPort bound the ports of workload API servers.
	firstPort = 20000
	lastPort  = 24000
)

// Lab is the simulated cloud with its servers. Host is the address that workload API servers listen on.
type Lab struct {
	Cloud  *cloud.Cloud
	Server *apiserver.Server
	Host   string
}

// Open makes sure that the workload cluster exists and listens where spec.controlPlaneEndpoint says; what
// that leaves open is chosen, and filled in.
func (l *Lab) Open(c *inmemoryv1.InMemoryCluster, cluster types.NamespacedName) (*cloud.Group, *apiserver.Endpoint, error) {
	group, err := l.Cloud.EnsureGroup(cluster, c.UID)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the resource group of %s: %w", cluster, err)
	}
	endpoint, ok := l.Server.Endpoint(cluster)
	if ok && endpoint.Group() != group {
		// What an earlier InMemoryCluster of this name left behind.
		if err := endpoint.Close(); err != nil {
			return nil, nil, err
		}
		ok = false
	}
	host := cmp.Or(c.Spec.ControlPlaneEndpoint.Host, l.Host)
	if !ok {
		if endpoint, err = l.listen(c, host, group); err != nil {
			return nil, nil, fmt.Errorf("opening the API server of %s: %w", cluster, err)
		}
	}
	c.Spec.ControlPlaneEndpoint.Host, c.Spec.ControlPlaneEndpoint.Port = host, endpoint.Port()
	return group, endpoint, nil
}

// Faults are what the workload cluster is to suffer from, as the annotation says.
func Faults(c *inmemoryv1.InMemoryCluster) (cloud.Faults, error) {
	text, found := c.Annotations[inmemoryv1.FaultsAnnotation]
	if !found {
		return cloud.Faults{}, nil
	}
	faults, err := cloud.ParseFaults(text)
	if err != nil {
		return cloud.Faults{}, fmt.Errorf("annotation %s: %w", inmemoryv1.FaultsAnnotation, err)
	}
	return faults, nil
}

// listen opens the port that the cluster has, or a free one of the range. Where the search begins depends
// on the cluster, so that many clusters, and several labs on one machine, rarely meet.
func (l *Lab) listen(c *inmemoryv1.InMemoryCluster, host string, group *cloud.Group) (*apiserver.Endpoint, error) {
	if port := c.Spec.ControlPlaneEndpoint.Port; port != 0 {
		endpoint, err := l.Server.Open(group, host, port)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%w: InMemoryCluster %s/%s has this port in spec.controlPlaneEndpoint, end what else listens there", err, c.Namespace, c.Name)
		}
		return endpoint, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.UID)) // a hash never fails to write
	start := int(h.Sum32() % (lastPort - firstPort))
	for i := range lastPort - firstPort {
		port := firstPort + (start+i)%(lastPort-firstPort)
		endpoint, err := l.Server.Open(group, host, port)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return endpoint, err
		}
	}
	return nil, fmt.Errorf("no port between %d and %d is free on %s", firstPort, lastPort, host)
}

// Close ends the workload cluster and drops everything in it.
func (l *Lab) Close(cluster types.NamespacedName) error {
	if endpoint, ok := l.Server.Endpoint(cluster); ok {
		if err := endpoint.Close(); err != nil {
			return fmt.Errorf("closing the API server of %s: %w", cluster, err)
		}
	}
	return l.Cloud.DeleteGroup(cluster)
}

// Drop ends the workload cluster of an InMemoryCluster that is gone without having been closed: somebody took its
// finalizer. One that takes its place, with another UID, is left alone.
func (l *Lab) Drop(uid types.UID) error {
	for _, cluster := range l.Cloud.Groups() {
		group, ok := l.Cloud.Group(cluster)
		if !ok || group.UID() != uid {
			continue
		}
		if endpoint, ok := l.Server.Endpoint(cluster); ok && endpoint.Group() == group {
			if err := endpoint.Close(); err != nil {
				return err
			}
		}
		return l.Cloud.Drop(group)
	}
	return nil
}

// Sweep removes what earlier processes kept of workload clusters whose InMemoryCluster is gone. living returns the UIDs
// of all that there are now. It is asked last: a journal is never older than its InMemoryCluster.
func (l *Lab) Sweep(living func() (map[types.UID]bool, error)) error {
	left, err := l.Cloud.Leftovers()
	if err != nil || len(left) == 0 {
		return err
	}
	owners, err := living()
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range left {
		if !owners[one.UID] {
			errs = append(errs, l.Cloud.Discard(one))
		}
	}
	return errors.Join(errs...)
}
