package docker

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
)

// networkLabel marks networks that EnsureNetwork created, which RemoveNetwork may remove.
const networkLabel = "docker.cluster.x-k8s.io/network"

// EnsureNetwork implements engine.Engine.
func (d *Docker) EnsureNetwork(ctx context.Context, name string) error {
	d.creating.Lock()
	defer d.creating.Unlock()
	_, found, err := d.network(ctx, name)
	if err != nil || found {
		return err
	}
	err = d.within(ctx, longTimeout, fmt.Sprintf("cannot create network %q", name), func(ctx context.Context) error {
		created, err := d.api.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{networkLabel: ""}})
		if err != nil {
			return err
		}
		return d.removeDuplicate(ctx, name, created.ID)
	})
	if engine.IsConflict(err) {
		return nil // Another process created it.
	}
	return err
}

// removeDuplicate removes a network that was just created if another process has created one of the same name: all processes
// keep the one with the lowest ID.
func (d *Docker) removeDuplicate(ctx context.Context, name, id string) error {
	all, err := d.api.NetworkList(ctx, client.NetworkListOptions{Filters: client.Filters{}.Add("name", name)})
	if err != nil {
		return err
	}
	for _, other := range all.Items {
		if other.Name == name && other.ID < id { // The filter also finds parts of names.
			_, err := d.api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
			return err
		}
	}
	return nil
}

// network returns the labels of a network, and whether it exists.
func (d *Docker) network(ctx context.Context, name string) (labels map[string]string, found bool, err error) {
	err = d.within(ctx, shortTimeout, fmt.Sprintf("cannot inspect network %q", name), func(ctx context.Context) error {
		network, err := d.api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
		labels = network.Network.Labels
		return err
	})
	if engine.IsNotFound(err) {
		return nil, false, nil
	}
	return labels, err == nil, err
}

// RemoveNetwork implements engine.Engine.
func (d *Docker) RemoveNetwork(ctx context.Context, name string) error {
	labels, found, err := d.network(ctx, name)
	if err != nil || !found {
		return err
	}
	if _, created := labels[networkLabel]; !created {
		return nil
	}
	attempt := fmt.Sprintf("cannot remove network %q", name)
	used := false
	err = d.within(ctx, shortTimeout, attempt, func(ctx context.Context) error {
		all, err := d.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("network", name)})
		used = len(all.Items) > 0
		return err
	})
	if err != nil || used {
		return err
	}
	err = d.within(ctx, longTimeout, attempt, func(ctx context.Context) error {
		_, err := d.api.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		return err
	})
	if reason := engine.ReasonFor(err); err != nil && (reason == engine.NotFound || reason == engine.Conflict || reason == engine.Forbidden) {
		return nil // A container was connected meanwhile, or another process removed it.
	}
	return err
}
