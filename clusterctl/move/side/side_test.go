package side

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/clusterctl/management"
)

func TestDo(t *testing.T) {
	refused := &management.ConnectionError{Host: "https://source", Err: syscall.ECONNREFUSED}
	denied := errors.New(`admission webhook "v" denied the request: not yet`)
	invalid := errors.New("invalid")
	failed := "cannot write it in the source cluster: "
	unreachable := failed + refused.Error()
	tests := []struct {
		reason    string
		responses []error // the last one is repeated
		requests  int
		retrying  []string
		want      string
	}{
		{"success", []error{nil}, 1, nil, ""},
		{"an error that stays is returned immediately", []error{invalid}, 1, nil, failed + "invalid"},
		{"an unreachable cluster is reported once", []error{refused, refused, nil}, 3, []string{unreachable}, ""},
		{"until the backoff ends", []error{refused}, 10, []string{unreachable}, unreachable},
		{"a webhook may have a stale cache", []error{denied, nil}, 2, []string{failed + denied.Error()}, ""},
		{"but not for long", []error{denied}, maxDenials, []string{failed + denied.Error()}, failed + denied.Error()},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var retrying []string
			s := &Side{Name: "source", Backoff: wait.Backoff{Steps: 10}, Retrying: func(err error) { retrying = append(retrying, err.Error()) }}
			requests := 0
			err := s.Do(t.Context(), "write it", func(context.Context) error {
				requests++
				return tc.responses[min(requests, len(tc.responses))-1]
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || requests != tc.requests {
				t.Errorf("got %q after %d requests, want %q after %d", got, requests, tc.want, tc.requests)
			}
			if diff := cmp.Diff(tc.retrying, retrying); diff != "" {
				t.Errorf("reported retries: -want +got:\n%s", diff)
			}
		})
	}
}
