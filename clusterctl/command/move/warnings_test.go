package move

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestWarnings(t *testing.T) {
	const (
		finalizer  = `metadata.finalizers: "md": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`
		deprecated = "cluster.x-k8s.io/v1beta1 Cluster is deprecated; use cluster.x-k8s.io/v1beta2 Cluster"
		own        = "AzureManagedCluster and the AzureManaged API are deprecated. Please migrate to AzureASOManagedCluster"
		class      = "The topology of Cluster a/b could not be validated against its ClusterClass and will not be reconciled until it can be: it is paused"
		user       = "images of k8s.gcr.io are frozen"
	)
	tests := []struct {
		reason string
		all    bool
		want   []string
	}{
		{"users see what they can change", false, []string{user}},
		{"and, if they want, what they cannot", true, []string{finalizer, deprecated, own, class, user}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			w := &warnings{io: streams, cluster: "target", all: tc.all}
			for _, text := range []string{finalizer, deprecated, own, class, user, user, finalizer, ""} {
				w.HandleWarningHeader(299, "-", text)
			}
			w.HandleWarningHeader(214, "-", "a proxy changed something")
			var want strings.Builder
			for _, text := range tc.want {
				want.WriteString("Warning: the API server of the target cluster warns: " + text + "\n")
			}
			if diff := cmp.Diff(want.String(), buffers.Err.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHideWarnings moves objects with a finalizer about whose name API servers warn.
func TestHideWarnings(t *testing.T) {
	w := newWorld(t, "warned", "a1")
	for _, tc := range []struct {
		hide  string
		shown bool
	}{{hideAll, false}, {hideDefault, false}, {hideNone, true}} {
		text, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[w.at], w.envs[1-w.at], func(o *Options) { o.HideWarnings = tc.hide })
		testenv.Must(t, err)
		w.arrived("with --hide-api-warnings " + tc.hide)
		if strings.Contains(text, "prefer a domain-qualified finalizer name") != tc.shown {
			t.Errorf("with --hide-api-warnings %s, the warning must be printed: %t\n%s", tc.hide, tc.shown, text)
		}
	}
	if err := (&Options{ToDirectory: "d", HideWarnings: "some"}).validate(); err == nil || !strings.Contains(err.Error(), "default, all or none") {
		t.Errorf("an unknown value is an error with the known ones: %v", err)
	}
}
