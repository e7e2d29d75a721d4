package controlplane

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestUnreachableWorkloadClusters(t *testing.T) {
	const grace, long = time.Minute, connection.UnreachableAfter
	for _, tc := range []struct {
		reason     string
		after      time.Duration
		grace      time.Duration
		lost, down bool
		again      time.Duration
	}{
		{"a connection that breaks for a moment is nothing to report", 0, grace, false, false, long},
		{"what waits for it is reported", long, grace, true, false, grace - long},
		{"conditions keep what was known during the grace period", grace - time.Second, grace, true, false, time.Second},
		{"nothing is known after it", grace, grace, true, true, 0},
		{"a shorter grace period ends first", long / 2, long / 2, false, true, long / 2},
		{"the default is five minutes", 5*time.Minute - time.Second, 0, true, false, time.Second},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			b.controller.connector.Grace = tc.grace
			b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			if _, err := b.take(t.Context(), "connect"); err != nil {
				t.Fatal(err)
			}
			b.API.Clock.SetTime(object.Now().Add(tc.after))
			result, err := b.take(t.Context(), "connect")
			if got := b.s.connection; err != nil || got.Lost != tc.lost || got.Down != tc.down || !got.Since.Equal(object.Now()) {
				t.Errorf("lost %t, down %t since %s, error %v; want %t, %t", got.Lost, got.Down, got.Since, err, tc.lost, tc.down)
			}
			if result.After() != tc.again {
				t.Errorf("again in %s, want %s", result.After(), tc.again)
			}
		})
	}
}
