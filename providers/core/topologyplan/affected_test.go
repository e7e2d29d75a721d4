package topologyplan

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// oneNamespace is a management cluster without objects whose user may list objects of single namespaces only.
type oneNamespace struct{ client.Reader }

func (oneNamespace) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	if o.ApplyOptions(opts); o.Namespace == "" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", nil)
	}
	return nil
}

func TestAffectedClustersOfOtherNamespaces(t *testing.T) {
	given := objects(t, cluster)
	shared := objects(t, cluster)
	user, other := shared[len(shared)-1], given[len(given)-1].DeepCopy()
	user.SetNamespace("teams")
	topology := user.Object["spec"].(map[string]any)["topology"].(map[string]any)
	topology["classNamespace"] = "default"
	other.SetNamespace("else")
	for _, tc := range []struct {
		reason string
		live   client.Reader
		want   []client.ObjectKey
	}{
		{"those of all namespaces, but not those of another class with the same name", nil,
			[]client.ObjectKey{{Namespace: "default", Name: "demo"}, {Namespace: "teams", Name: "demo"}}},
		{"those of the plan's namespace, if the user may not list others", oneNamespace{}, []client.ObjectKey{{Namespace: "default", Name: "demo"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w, err := NewWorld(tc.live)
			testenv.Must(t, err)
			input, err := inNewest(t.Context(), given)
			testenv.Must(t, err)
			for _, u := range append(input, user, other) {
				w.Put(u)
			}
			classes, clusters, err := w.affected(t.Context(), "default", input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, clusters); diff != "" || len(classes) != 1 {
				t.Errorf("classes %v, Clusters (-want +got):\n%s", classes, diff)
			}
		})
	}
}

func TestPlannedCluster(t *testing.T) {
	p := &Plan{Clusters: []client.ObjectKey{{Namespace: "default", Name: "a"}, {Namespace: "teams", Name: "a"}, {Namespace: "teams", Name: "b"}}}
	in := Input{Namespace: "default", Objects: objects(t)}
	for name, want := range map[string]client.ObjectKey{"a": p.Clusters[0], "b": p.Clusters[2]} {
		in.Cluster = name
		if got, err := p.planned(in); err != nil || *got != want {
			t.Errorf("--cluster %s selects %v, want %s; error %v", name, got, want, err)
		}
	}
}
