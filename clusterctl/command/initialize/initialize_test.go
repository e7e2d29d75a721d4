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
	streams, buffers := iostreams.Test()
	streams.FollowUp = flagged{}
	printHint(&Options{IO: streams})
	want := `
Your management cluster has been initialized successfully!

The providers are starting. To wait until they are ready, run:

  kubectl wait --for=condition=Available deployment -A -l cluster.x-k8s.io/provider --timeout=5m --flags

You can now create your first workload cluster by running the following:

  clusterctl generate cluster [name] --kubernetes-version [version] | kubectl apply -f - --flags

or, which also waits until it is ready:

  clusterctl create cluster [name] --kubernetes-version [version] --flags

`
	if diff := cmp.Diff(want, buffers.Out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
