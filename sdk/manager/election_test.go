package manager

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestLeaseHasItsOwnConnection matters because a timeout on the connection of the manager ends each of its watches when it has passed, so
// that all of them are opened again every few seconds.
func TestLeaseHasItsOwnConnection(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1", UserAgent: "manager"}
	if _, err := newLease(config, "ns", "id", LeaderElectionDurations{RenewDeadline: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "manager" {
		t.Errorf("the connection of the manager has timeout %s and user agent %q, want none and its own", config.Timeout, config.UserAgent)
	}
}
