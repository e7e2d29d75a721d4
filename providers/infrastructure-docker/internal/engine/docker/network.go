package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// networkLabel marks networks that EnsureNetwork created, which RemoveNetwork may remove.
const networkLabel = "docker.cluster.x-k8s.io/network"

// EnsureNetwork implements engine.Engine. Docker allows several networks of one name, and then refuses to use any of them by name:
// if processes have created some at the same time, the unused ones are removed.
func (d *Docker) EnsureNetwork(ctx context.Context, name string) error {
	d.creating.Lock()
	defer d.creating.Unlock()
	found, err := d.networks(ctx, name)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		err := d.within(ctx, longTimeout, fmt.Sprintf("cannot create network %q", name), func(ctx context.Context) error {
			_, err := d.api.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{networkLabel: ""}})
			return err
		})
		if err != nil && !engine.IsConflict(err) { // Another process created it.
			return err
		}
		if found, err = d.networks(ctx, name); err != nil {
			return err
		}
	}
	for len(found) > 1 {
		i, err := d.unused(ctx, found)
		if err != nil {
			return err
		}
		if i < 0 {
			return fmt.Errorf("%d networks are named %q, and have containers: remove all but one with \"docker network rm\"", len(found), name)
		}
		if err := d.removeNetwork(ctx, found[i]); err != nil {
			return err
		}
		found = slices.Delete(found, i, i+1)
	}
	return nil
}

// networks returns the networks of a name, by descending ID: all processes remove duplicates in the same order.
func (d *Docker) networks(ctx context.Context, name string) ([]network.Summary, error) {
	var found []network.Summary
	err := d.within(ctx, shortTimeout, fmt.Sprintf("cannot inspect network %q", name), func(ctx context.Context) error {
		all, err := d.api.NetworkList(ctx, client.NetworkListOptions{Filters: client.Filters{}.Add("name", name)})
		// The filter also finds parts of names.
		found = slices.DeleteFunc(all.Items, func(n network.Summary) bool { return n.Name != name })
		return err
	})
	slices.SortFunc(found, func(a, b network.Summary) int { return cmp.Compare(b.ID, a.ID) })
	return found, err
}

// unused returns the index of the first network that EnsureNetwork created and no container is connected to, running or not;
// -1 if there is none.
func (d *Docker) unused(ctx context.Context, networks []network.Summary) (int, error) {
	for i, n := range networks {
		if _, created := n.Labels[networkLabel]; !created {
			continue
		}
		used := false
		err := d.within(ctx, shortTimeout, fmt.Sprintf("cannot list the containers of network %q", n.Name), func(ctx context.Context) error {
			all, err := d.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("network", n.ID)})
			used = len(all.Items) > 0
			return err
		})
		if err != nil || !used {
			return i, err
		}
	}
	return -1, nil
}

func (d *Docker) removeNetwork(ctx context.Context, n network.Summary) error {
	err := d.within(ctx, longTimeout, fmt.Sprintf("cannot remove network %q", n.Name), func(ctx context.Context) error {
		_, err := d.api.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		return err
	})
	if reason := engine.ReasonFor(err); err != nil && (reason == engine.NotFound || reason == engine.Conflict || reason == engine.Forbidden) {
		return nil // A container was connected meanwhile, or another process removed it.
	}
	return err
}

// RemoveNetwork implements engine.Engine.
func (d *Docker) RemoveNetwork(ctx context.Context, name string) error {
	found, err := d.networks(ctx, name)
	if err != nil {
		return err
	}
	i, err := d.unused(ctx, found)
	if err != nil || i < 0 {
		return err
	}
	return d.removeNetwork(ctx, found[i])
}
