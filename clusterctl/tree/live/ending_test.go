package live

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	e := Ending{Cluster: cluster, Timeout: time.Minute, State: "ready", Going: "it", Hint: "look"}
	tests := []struct {
		reason       string
		err, readErr error
		waiting      []string
		want         string
	}{
		{reason: "a timeout reports what is missing", err: ErrTimeout, waiting: []string{"a", "b"}, want: "cluster ns/c1 is not ready after 1m0s: still waiting for a; b: look"},
		{reason: "no objects were read", err: ErrTimeout, readErr: errors.New("refused"), want: "cluster ns/c1 is not ready after 1m0s: still waiting for its objects to be read (refused): look"},
		{reason: "an interruption reports what continues", err: context.Canceled, waiting: []string{"a"}, want: "interrupted while waiting for a; it continues in the background: look"},
		{reason: "other errors are returned unchanged", err: errors.New("the Cluster has failed"), want: "cluster ns/c1: the Cluster has failed"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := e.Explain(tc.err, tc.waiting, tc.readErr); got.Error() != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
