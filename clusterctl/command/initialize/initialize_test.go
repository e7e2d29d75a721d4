package initialize

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// flagged adds flags to every command line.
type flagged struct{}

func (flagged) Line(line string) string { return line + " --flags" }
func (flagged) Text(text string) string { return text }

func TestHint(t *testing.T) {
	const starting = `
Your management cluster has been initialized successfully!

The providers are starting. To wait until they are ready, run:

  kubectl wait --for=condition=Available deployment -A -l cluster.x-k8s.io/provider --timeout=5m --flags

`
	for _, tc := range []struct {
		reason         string
		infrastructure []string
		want           string
	}{
		{"one infrastructure provider is the default", []string{"docker"}, `You can now create your first workload cluster by running the following:

  clusterctl generate cluster my-cluster --kubernetes-version v1.36.3 | kubectl apply -f - --flags

or, which also waits until it is ready:

  clusterctl create cluster my-cluster --kubernetes-version v1.36.3 --flags

`},
		{"of several, one has to be named", []string{"docker", "in-memory"}, `You can now create your first workload cluster by running the following:

  clusterctl generate cluster my-cluster --infrastructure docker --kubernetes-version v1.36.3 | kubectl apply -f - --flags

or, which also waits until it is ready:

  clusterctl create cluster my-cluster --infrastructure docker --kubernetes-version v1.36.3 --flags

`},
		{"without one, nothing can be created", nil, "Workload clusters need an infrastructure provider. To list those that `init --infrastructure` knows, run:\n\n" +
			"  clusterctl config repositories --flags\n\n"},
	} {
		streams, buffers := iostreams.Test()
		streams.FollowUp = flagged{}
		printHint(&Options{IO: streams}, tc.infrastructure)
		if diff := cmp.Diff(starting+tc.want, buffers.Out.String()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
