package apiversion

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestStoredVersion(t *testing.T) {
	unhashed := serves(older, older, newer)
	for v := range unhashed.resources {
		unhashed.resources[v][1].StorageVersionHash = "of another kind"
	}
	tests := []struct {
		reason   string
		served   *discovered
		want     string
		requests int
	}{
		{reason: "only the older version is served", served: serves(older, older), want: older, requests: 2},
		{reason: "both are served, and the older one is stored", served: serves(older, older, newer), want: older, requests: 1},
		{reason: "both are served, and the newer one is stored", served: serves(newer, older, newer), want: newer, requests: 1},
		{reason: "only the newer version is served", served: serves(newer, newer), want: newer, requests: 1},
		{reason: "the hash of the API server is computed in another way", served: unhashed, want: newer, requests: 2},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			s := newStoredVersions(tt.served, newMachines().Versions, clocktesting.NewFakePassiveClock(time.Now()))
			for range 3 {
				if got, err := s.get(t.Context(), machineKind()); err != nil || got != tt.want {
					t.Fatalf("got %s, %v, want %s", got, err, tt.want)
				}
			}
			if tt.served.requests != tt.requests {
				t.Errorf("%d requests, want %d", tt.served.requests, tt.requests)
			}
		})
	}
}

func TestStoredVersionOfAnAbsentKind(t *testing.T) {
	d, clock := serves(older), clocktesting.NewFakePassiveClock(time.Now())
	s := newStoredVersions(d, newMachines().Versions, clock)
	if _, err := s.get(t.Context(), machineKind()); !meta.IsNoMatchError(err) {
		t.Fatalf("got %v, want no match", err)
	}
	d.resources = serves(older, older).resources
	clock.SetTime(clock.Now().Add(absentInterval))
	if got, err := s.get(t.Context(), machineKind()); err != nil || got != older {
		t.Errorf("after it was installed: %s, %v", got, err)
	}
}

func TestRefresh(t *testing.T) {
	d, clock := serves(older, older), clocktesting.NewFakePassiveClock(time.Now())
	s := newStoredVersions(d, newMachines().Versions, clock)
	expect := func(reason, want string, requests int) {
		t.Helper()
		if got, err := s.get(t.Context(), machineKind()); err != nil || got != want || d.requests != requests {
			t.Errorf("%s: %s, %v after %d requests, want %s after %d", reason, got, err, d.requests, want, requests)
		}
	}
	expect("at first", older, 2)
	d.resources = serves(newer, older, newer).resources
	for range 10 {
		if err := s.refresh(t.Context(), machineKind()); err != nil {
			t.Fatal(err)
		}
	}
	expect("a moment later", older, 2)
	clock.SetTime(clock.Now().Add(2 * refreshInterval))
	if err := s.refresh(t.Context(), machineKind()); err != nil {
		t.Fatal(err)
	}
	expect("after the change", newer, 3)
	d.err = errors.New("the API server is down")
	clock.SetTime(clock.Now().Add(2 * refreshInterval))
	if err := s.refresh(t.Context(), machineKind()); err == nil {
		t.Error("want an error")
	}
	expect("while the API server is down", newer, 4)
}
