package controlplane

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestInitialized(t *testing.T) {
	failure, backoff := errors.New("no route"), connection.ErrBackoff
	cases := []struct {
		reason    string
		before    bool
		connected bool
		uploaded  bool
		err       error
		want      bool
		fails     bool
		after     time.Duration
	}{
		{reason: "it is recorded permanently, and nothing is read", before: true, connected: true, err: failure, want: true},
		{reason: "without a connection, its event is waited for"},
		{reason: "kubeadm has uploaded its configuration", connected: true, uploaded: true, want: true},
		{reason: "the ConfigMap is not watched, so it is read again", connected: true, after: initializedBackstop},
		{reason: "an error is reported", connected: true, err: failure, fails: true, after: initializedBackstop},
		{reason: "while the API server is not called after a timeout, that is no error", connected: true, err: backoff, after: initializedBackstop},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t)
			b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(tc.before)
			if tc.connected {
				w := kcptest.NewWorkload(b.Key())
				w.Initialized, w.Unresponsive = tc.uploaded, tc.err
				b.s.connection.Workload = w
			}
			result, err := b.take(t.Context(), "initialized")
			if (err != nil) != tc.fails || result.After() != tc.after || ptr.Deref(b.KCP.Status.Initialization.ControlPlaneInitialized, false) != tc.want {
				t.Errorf("initialized %t, want %t; again after %s, want %s; error %v", ptr.Deref(b.KCP.Status.Initialization.ControlPlaneInitialized, false), tc.want, result.After(), tc.after, err)
			}
			available := condition.Get(b.KCP, controlplanev1.AvailableV1Beta1Condition)
			waits := available != nil && available.Reason == controlplanev1.WaitingForKubeadmInitV1Beta1Reason
			if waits != (!tc.want && !tc.fails) {
				t.Errorf("condition Available is %+v", available)
			}
		})
	}
}
