package failsafe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

func TestRedacted(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("hunter2"))
	tests := []struct {
		reason string
		err    error
		want   string
	}{
		{reason: "an answer is its code alone", err: conflict, want: "the API server answered 409 Conflict"},
		{reason: "so is one that was wrapped, with its words, on the way", err: fmt.Errorf("hunter2: %w", conflict), want: "the API server answered 409 Conflict"},
		{reason: "errors that are not from an API server do not quote the request", err: context.DeadlineExceeded, want: "context deadline exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got := failsafe.Redacted(tt.err)
			if got.Error() != tt.want || !errors.Is(got, tt.err) || apierrors.IsConflict(got) != apierrors.IsConflict(tt.err) {
				t.Errorf("got %v, want %s, with the cause recognizable", got, tt.want)
			}
		})
	}
	if err := failsafe.Redacted(nil); err != nil {
		t.Errorf("success became %v", err)
	}
}
