package docker

import (
	"testing"

	"github.com/moby/moby/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// TestDuplicateNetworks checks that networks of the same name, which processes have created at the same time, do not stay: Docker
// refuses to use any of them.
func TestDuplicateNetworks(t *testing.T) {
	d, w := world(t)
	name := w.Prefix + "duplicate"
	for range 3 {
		if _, err := d.api.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{networkLabel: ""}}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.networks(t.Context(), name)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d networks, error %v", len(all), err)
	}
	if err := d.EnsureNetwork(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	left, err := d.networks(t.Context(), name)
	if err != nil || len(left) != 1 || left[0].ID != all[2].ID {
		t.Errorf("networks %v, error %v, want the one with the lowest ID", left, err)
	}
	running(t, d, w, engine.Container{Network: name})
	another, err := d.api.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{Driver: "bridge", Labels: map[string]string{networkLabel: ""}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.EnsureNetwork(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	left, err = d.networks(t.Context(), name)
	if err != nil || len(left) != 1 || left[0].ID == another.ID {
		t.Errorf("networks %v, error %v, want the one that is in use", left, err)
	}
	if err := d.Remove(t.Context(), w.Prefix+"running"); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveNetwork(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if left, err = d.networks(t.Context(), name); err != nil || len(left) > 0 {
		t.Errorf("left: %v, error %v", left, err)
	}
}
