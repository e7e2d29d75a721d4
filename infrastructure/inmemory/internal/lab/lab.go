// Package lab brings the simulated cloud and its servers together: it opens the workload cluster that an
// InMemoryCluster stands for, the same after a restart.
//
// When a cluster is opened and what happens in it, the controllers decide.
package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

// Ports is a range of ports, both ends included.
type Ports struct{ First, Last int }

// DefaultPorts are those of workload API servers if nothing else is said.
func DefaultPorts() Ports { return Ports{First: 20000, Last: 24000} }

// ParsePorts reads a range such as 20000-24000. Privileged ports are none to give away.
func ParsePorts(text string) (Ports, error) {
	var p Ports
	first, last, found := strings.Cut(text, "-")
	var errs [2]error
	p.First, errs[0] = strconv.Atoi(first)
	p.Last, errs[1] = strconv.Atoi(last)
	if err := errors.Join(errs[:]...); err != nil || !found || p.First < 1024 || p.Last > 65535 || p.Last < p.First {
		return Ports{}, fmt.Errorf("%q is no range of ports from 1024 to 65535, such as 20000-24000", text)
	}
	return p, nil
}

// String is the reverse of ParsePorts.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

func (p Ports) contains(port int) bool { return p.First <= port && port <= p.Last }

// ErrRefused is why an endpoint that somebody wrote into spec.controlPlaneEndpoint is not opened. Trying again does not
// help.
var ErrRefused = errors.New("spec.controlPlaneEndpoint is refused")

// Lab is the simulated cloud with its servers. Workload API servers listen on Host, at Ports, and nowhere else: what
// an InMemoryCluster says is written by people who may not be trusted with the manager's other addresses.
type Lab struct {
	Cloud  *cloud.Cloud
	Server *apiserver.Server
	Host   string
	// Ports are DefaultPorts if they are zero.
	Ports Ports
	// Claims returns the ports that other InMemoryClusters have a better claim to than this one, whether they listen or
	// not. It is asked before a port is opened. A nil function knows of none.
	Claims func(ctx context.Context, c *inmemoryv1.InMemoryCluster) (map[int]bool, error)
}

// Open makes sure that the workload cluster exists and listens where spec.controlPlaneEndpoint says; what
// that leaves open is chosen, and filled in.
func (l *Lab) Open(ctx context.Context, c *inmemoryv1.InMemoryCluster, cluster types.NamespacedName) (*cloud.Group, *apiserver.Endpoint, error) {
	endpoint, open := l.Server.Endpoint(cluster)
	if err := l.accept(c); err != nil {
		return nil, nil, fmt.Errorf("opening the API server of %s: %w", cluster, err)
	}
	var taken map[int]bool
	if l.Claims != nil && (!open || endpoint.Group().UID() != c.UID) {
		var err error
		if taken, err = l.Claims(ctx, c); err != nil {
			return nil, nil, fmt.Errorf("opening the API server of %s: %w", cluster, err)
		}
	}
	if port := c.Spec.ControlPlaneEndpoint.Port; taken[port] {
		return nil, nil, fmt.Errorf("opening the API server of %s: port %d in spec.controlPlaneEndpoint is that of another InMemoryCluster", cluster, port)
	}
	group, err := l.Cloud.EnsureGroup(cluster, c.UID)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the resource group of %s: %w", cluster, err)
	}
	if open && endpoint.Group() != group {
		// What an earlier InMemoryCluster of this name left behind.
		if err := endpoint.Close(); err != nil {
			return nil, nil, err
		}
		open = false
	}
	if !open {
		if endpoint, err = l.listen(c, group, taken); err != nil {
			return nil, nil, fmt.Errorf("opening the API server of %s: %w", cluster, err)
		}
	}
	if port := c.Spec.ControlPlaneEndpoint.Port; port != 0 && port != endpoint.Port() {
		return nil, nil, fmt.Errorf("%w: port %d: the API server of %s listens at port %d already", ErrRefused, port, cluster, endpoint.Port())
	}
	c.Spec.ControlPlaneEndpoint.Host, c.Spec.ControlPlaneEndpoint.Port = l.Host, endpoint.Port()
	return group, endpoint, nil
}

// accept refuses endpoints that are not this provider's to open.
func (l *Lab) accept(c *inmemoryv1.InMemoryCluster) error {
	host, port := c.Spec.ControlPlaneEndpoint.Host, c.Spec.ControlPlaneEndpoint.Port
	if host != "" && host != l.Host {
		return fmt.Errorf("%w: host %q: API servers listen on %s only. One that was opened elsewhere, by another manager or before its address changed, cannot be reached any more", ErrRefused, host, l.Host)
	}
	if ports := l.ports(); port != 0 && !ports.contains(port) {
		return fmt.Errorf("%w: port %d: API servers listen at ports %s only, leave it open to get one", ErrRefused, port, ports)
	}
	return nil
}

func (l *Lab) ports() Ports {
	if l.Ports == (Ports{}) {
		return DefaultPorts()
	}
	return l.Ports
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

// listen opens the port that the cluster has, or a free one of the range that is not another cluster's. Where the search begins depends
// on the cluster, so that many clusters, and several labs on one machine, rarely meet.
func (l *Lab) listen(c *inmemoryv1.InMemoryCluster, group *cloud.Group, taken map[int]bool) (*apiserver.Endpoint, error) {
	if port := c.Spec.ControlPlaneEndpoint.Port; port != 0 {
		endpoint, err := l.Server.Open(group, l.Host, port)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%w: InMemoryCluster %s/%s has this port in spec.controlPlaneEndpoint, end what else listens there", err, c.Namespace, c.Name)
		}
		return endpoint, err
	}
	ports := l.ports()
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.UID)) // a hash never fails to write
	count := ports.Last - ports.First + 1
	start := int(h.Sum32() % uint32(count)) //nolint:gosec // At most 65535.
	for i := range count {
		port := ports.First + (start+i)%count
		if taken[port] {
			continue
		}
		endpoint, err := l.Server.Open(group, l.Host, port)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return endpoint, err
		}
	}
	return nil, fmt.Errorf("no port of %s is free on %s", ports, l.Host)
}

// Close ends the workload cluster of an InMemoryCluster and drops everything in it. cluster is what it was opened for;
// another InMemoryCluster's is left alone, whatever somebody wrote.
func (l *Lab) Close(cluster types.NamespacedName, uid types.UID) error {
	if err := l.Drop(uid); err != nil {
		return fmt.Errorf("closing the API server of %s: %w", cluster, err)
	}
	return l.Cloud.DiscardOf(cluster, uid)
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
