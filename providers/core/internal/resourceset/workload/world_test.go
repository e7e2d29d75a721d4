package workload

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// widgets is a kind that manifests define.
func widgets(group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
}

// objects returns the objects of a manifest, which must be readable.
func objects(t *testing.T, text string) []manifest.Object {
	t.Helper()
	all, problems := manifest.Read(map[string][]byte{"manifest.yaml": []byte(text)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return all
}

// outcome applies all objects of a manifest, and returns the errors.
func outcome(t *testing.T, write func(context.Context, manifest.Object) error, text string) []string {
	t.Helper()
	var out []string
	for _, o := range objects(t, text) {
		if err := write(t.Context(), o); err != nil {
			out = append(out, o.GetKind()+" "+o.GetName()+": "+err.Error())
		}
	}
	return out
}

// cluster returns a client of a real API server, like those of package remote, and a namespace of its own.
func cluster(t *testing.T) (client.Client, string) {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd")
	return e.NewClient(t, testenv.Scheme(t)), e.Namespace(t)
}

// poll is a short pause for tests that wait for a real API server, whatever the Session asks for.
func poll(waited *time.Duration) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		*waited += d
		return sleep(ctx, d)
	}
}
