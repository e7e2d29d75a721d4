// Package lab connects the simulated cloud with its servers: it opens the workload cluster of an infrastructure object, restores it after a
// restart, and issues the serving certificates.
//
// Controllers decide when to open a cluster and what happens in it.
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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
)

// Ports is an inclusive range of ports.
type Ports struct{ First, Last int }

// DefaultPorts is the default range for workload API servers.
func DefaultPorts() Ports { return Ports{First: 20000, Last: 24000} }

// ParsePorts parses a range such as 20000-24000. Privileged ports are invalid.
func ParsePorts(text string) (Ports, error) {
	var p Ports
	first, last, found := strings.Cut(text, "-")
	var errs [2]error
	p.First, errs[0] = strconv.Atoi(first)
	p.Last, errs[1] = strconv.Atoi(last)
	if err := errors.Join(errs[:]...); err != nil || !found || p.First < 1024 || p.Last > 65535 || p.Last < p.First {
		return Ports{}, fmt.Errorf("%q is not a range of ports between 1024 and 65535, such as 20000-24000", text)
	}
	return p, nil
}

// String is the reverse of ParsePorts.
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

func (p Ports) contains(port int) bool { return p.First <= port && port <= p.Last }

// ErrInvalidEndpoint is returned for an endpoint in spec.controlPlaneEndpoint that must not be opened. It is permanent.
var ErrInvalidEndpoint = errors.New("invalid spec.controlPlaneEndpoint")

// Lab is the simulated cloud with its servers. Workload API servers listen on Host, at Ports, and nowhere else: users who
// may write these objects must not open the manager's other addresses.
type Lab struct {
	Cloud  *cloud.Cloud
	Server *apiserver.Server
	Host   string
	// Ports defaults to DefaultPorts.
	Ports Ports
	// Claims returns the ports to which other objects have a prior claim, whether they listen or not. It is
	// called before a port is opened. Nil means none.
	Claims func(ctx context.Context, c kinds.Cluster) (map[int]bool, error)
}

// Open ensures that the workload cluster exists and listens at spec.controlPlaneEndpoint. It chooses and sets what is
// empty there.
func (l *Lab) Open(
	ctx context.Context, c kinds.Cluster, cluster types.NamespacedName,
) (*cloud.Group, *apiserver.Endpoint, error) {
	endpoint, open := l.Server.Endpoint(cluster)
	if err := l.accept(c); err != nil {
		return nil, nil, fmt.Errorf("open the API server of %s: %w", cluster, err)
	}
	var taken map[int]bool
	if l.Claims != nil && (!open || endpoint.Group().UID() != c.UID) {
		var err error
		if taken, err = l.Claims(ctx, c); err != nil {
			return nil, nil, fmt.Errorf("open the API server of %s: %w", cluster, err)
		}
	}
	if _, port := c.Endpoint(); taken[port] {
		return nil, nil, fmt.Errorf("open the API server of %s: port %d in spec.controlPlaneEndpoint is in use by another %s",
			cluster, port, c.Kind)
	}
	group, err := l.Cloud.EnsureGroup(cluster, c.UID)
	if err != nil {
		return nil, nil, fmt.Errorf("open the resource group of %s: %w", cluster, err)
	}
	if open && endpoint.Group() != group {
		// Left over from an earlier object of this name.
		if err := endpoint.Close(); err != nil {
			return nil, nil, err
		}
		open = false
	}
	if !open {
		if endpoint, err = l.listen(c, group, taken); err != nil {
			return nil, nil, fmt.Errorf("open the API server of %s: %w", cluster, err)
		}
	}
	if _, port := c.Endpoint(); port != 0 && port != endpoint.Port() {
		return nil, nil, fmt.Errorf("%w: port %d: the API server of %s already listens on port %d", ErrInvalidEndpoint, port, cluster,
			endpoint.Port())
	}
	c.SetEndpoint(l.Host, endpoint.Port())
	return group, endpoint, nil
}

// Inherit sets the endpoint of the Cluster if the object has none: the user has set it there, or the object replaces another one. The
// endpoint of a Cluster never changes.
func (l *Lab) Inherit(c kinds.Cluster, cluster *clusterv1.Cluster) {
	at := cluster.Spec.ControlPlaneEndpoint
	if _, port := c.Endpoint(); port == 0 && at.Host == l.Host {
		c.SetEndpoint(at.Host, int(at.Port))
	}
}

// accept rejects endpoints that this provider must not open.
func (l *Lab) accept(c kinds.Cluster) error {
	host, port := c.Endpoint()
	if host != "" && host != l.Host {
		return fmt.Errorf("%w: host %q: API servers only listen on %s. One that was opened on another host, by another manager or before "+
			"its address changed, is no longer reachable", ErrInvalidEndpoint, host, l.Host)
	}
	if ports := l.ports(); port != 0 && !ports.contains(port) {
		return fmt.Errorf("%w: port %d: API servers only listen on ports %s, leave it empty to get one", ErrInvalidEndpoint, port, ports)
	}
	return nil
}

func (l *Lab) ports() Ports {
	if l.Ports == (Ports{}) {
		return DefaultPorts()
	}
	return l.Ports
}

// Faults returns the faults in the annotation.
func Faults(c kinds.Cluster) (faults.Faults, error) {
	text, found := c.Annotations[inmemoryv1.FaultsAnnotation]
	if !found {
		return faults.Faults{}, nil
	}
	parsed, err := faults.Parse(text)
	if err != nil {
		return faults.Faults{}, fmt.Errorf("annotation %s: %w", inmemoryv1.FaultsAnnotation, err)
	}
	return parsed, nil
}

// listen opens the cluster's port, or a free one of the range that no other cluster claims. The search starts at a port
// that depends on the cluster, so that clusters, and several labs on one machine, rarely collide.
func (l *Lab) listen(c kinds.Cluster, group *cloud.Group, taken map[int]bool) (*apiserver.Endpoint, error) {
	if _, port := c.Endpoint(); port != 0 {
		endpoint, err := l.Server.Open(group, l.Host, port)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%w: %s %s/%s has this port in spec.controlPlaneEndpoint, stop the program that listens there",
				err, c.Kind, c.Namespace, c.Name)
		}
		return endpoint, err
	}
	ports := l.ports()
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.UID)) // never fails
	count := ports.Last - ports.First + 1
	start := int(h.Sum32() % uint32(count)) // At most 65535.
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

// Close shuts down the workload cluster of an object and deletes everything in it. cluster must be the one it
// was opened for; those of other objects are never affected.
func (l *Lab) Close(cluster types.NamespacedName, uid types.UID) error {
	if err := l.Drop(uid); err != nil {
		return fmt.Errorf("close the API server of %s: %w", cluster, err)
	}
	return l.Cloud.DiscardOf(cluster, uid)
}

// Drop shuts down the workload cluster of an object that was deleted without being closed, because its finalizer
// was removed. A successor with another UID is not affected.
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

// Sweep removes journals of earlier processes whose object no longer exists. living returns the UIDs of all existing
// ones. It is called last, because a journal is never older than its object.
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
