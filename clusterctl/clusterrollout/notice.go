package clusterrollout

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Notice returns what users should know about the rollout that a Cluster takes part in; empty if it takes part in none, or if that has
// ended. It reads at most the rollout. The commands in it are in backquotes.
func Notice(ctx context.Context, c client.Reader, cluster metav1.Object, now time.Time) string {
	e, err := fleetv1.RolloutEntryOf(cluster)
	if e == nil || err != nil {
		return ""
	}
	r := &fleetv1.ClusterRollout{}
	err = c.Get(ctx, client.ObjectKey{Namespace: cluster.GetNamespace(), Name: e.Rollout}, r)
	if err != nil || r.Ended() || ID(r) != e.ID {
		return "" // It is about something else, which must not fail because of that.
	}
	text := fmt.Sprintf("ClusterRollout %s (%s): this Cluster, in stage %s, has been %s for %s", r.Name, Change(&r.Spec.Change), e.Stage,
		words(string(e.State)), age(now, e.Since))
	if e.Message != "" {
		text += ": " + e.Message
	}
	command := fmt.Sprintf("`clusterctl rollout status %s -n %s`", r.Name, r.Namespace)
	if Halted(r) {
		return fmt.Sprintf("%s. The rollout has halted: %s: see %s", text, strings.TrimSuffix(message(r), "."), command)
	}
	return fmt.Sprintf("%s. The rollout is %s: see %s", text, words(string(r.Status.Phase)), command)
}

// words returns a phase or state in words, such as waiting for approval.
func words(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte(' ')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
