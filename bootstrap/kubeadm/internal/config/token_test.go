package config

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/remote"
)

func TestTokenIsKeptAlive(t *testing.T) {
	tests := []struct {
		reason string
		later  time.Duration
		joined bool
		gone   bool
		err    error
		// expires is when the token expires afterwards, counted from its creation.
		expires  time.Duration
		again    time.Duration
		requests bool
	}{
		{reason: "a fresh token is good", later: time.Minute, expires: ttl, again: ttl / 3, requests: true},
		{reason: "with five sixths of its life left it is still", later: ttl / 6, expires: ttl, again: ttl / 3, requests: true},
		{reason: "with less it is prolonged", later: ttl/6 + time.Second, expires: ttl + ttl/6 + time.Second, again: ttl / 3, requests: true},
		{reason: "also when it expired and is still there", later: time.Hour, expires: ttl + time.Hour, again: ttl / 3, requests: true},
		{reason: "a machine that joined needs none", later: time.Hour, joined: true, expires: ttl},
		{reason: "a token that somebody deleted stays deleted", later: time.Hour, gone: true, requests: true},
		{reason: "without connection it is tried later", later: time.Hour, err: remote.ErrNotConnected, expires: ttl, again: ttl / 3},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			machine := newMachine("w", false)
			w := newWorld(t, testCA(t), initialized(newCluster()), machine, newConfig("w", bootstrapv1.KubeadmConfigSpec{}))
			w.mustReconcile(t, "w")
			if tt.joined {
				live := get(t, w, "w", &clusterv1.Machine{})
				live.Status.NodeRef = &corev1.ObjectReference{Name: "w"}
				if err := w.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
			}
			token := &corev1.Secret{}
			if err := w.workload.Client.Get(t.Context(), tokenKey("w-config-uid"), token); err != nil {
				t.Fatal(err)
			}
			secret := string(token.Data["token-secret"])
			if tt.gone {
				if err := w.workload.Delete(t.Context(), token); err != nil {
					t.Fatal(err)
				}
			}
			w.workload.err, w.workload.requests = tt.err, 0
			w.clock.SetTime(now.Add(tt.later))
			result := w.mustReconcile(t, "w")
			if result.RequeueAfter != tt.again || (w.workload.requests > 0) != tt.requests {
				t.Errorf("again after %v, want %v; %d requests, want any: %v", result.RequeueAfter, tt.again, w.workload.requests, tt.requests)
			}
			if tt.gone {
				return
			}
			if err := w.workload.Client.Get(t.Context(), tokenKey("w-config-uid"), token); err != nil {
				t.Fatal(err)
			}
			want := now.Add(tt.expires).Format(time.RFC3339)
			if got := string(token.Data["expiration"]); got != want || string(token.Data["token-secret"]) != secret {
				t.Errorf("expires %s, want %s, with the same secret", got, want)
			}
		})
	}
}

func TestTokenID(t *testing.T) {
	format := regexp.MustCompile(`^[a-z0-9]{6}$`)
	seen := map[string]bool{}
	for i := range 1000 {
		id := tokenID(types.UID(fmt.Sprintf("uid-%d", i)))
		if !format.MatchString(id) {
			t.Fatalf("%q is not the ID of a token", id)
		}
		seen[id] = true
	}
	if len(seen) != 1000 || tokenID("uid-1") != tokenID("uid-1") {
		t.Errorf("%d IDs of 1000 UIDs, want different ones that stay the same", len(seen))
	}
}
