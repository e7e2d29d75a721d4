package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWrite(t *testing.T) {
	tests := []struct {
		reason, changes string
		unread          []string
		want            string
	}{
		{reason: "nothing is wrong", want: "Cluster ns/c1 waits for nothing: 3 of 3 control plane Machines and 2 of 2 workers are ready\n"},
		{
			reason: "the cause, the chain, what to do, warnings, and what else was found",
			changes: "ToyMachine/md-a condition Ready False/Warning InsufficientCapacity no hosts in zone a\n" +
				"ToyMachine/md-a warning FailedCreate no hosts in zone a\n" +
				"Machine/cp-1 condition NodeHealthy False/Error NodeNotFound Node cp-1 does not exist",
			unread: []string{"Deployments of the providers: the user of the kubeconfig may not list them"},
			want: `
Cluster ns/c1 waits for ToyMachine/md-a: InsufficientCapacity: no hosts in zone a (MachineInfrastructureFailed, for 5m)

Cluster/c1  Ready=True
└─MachineDeployment/md  Ready=True
  └─MachineSet/md-1  Ready=True
    └─Machine/md-a  Ready=True
      └─ToyMachine/md-a  Ready=False InsufficientCapacity: no hosts in zone a

What to do:
  - See ` + "`kubectl describe toymachine.infrastructure.cluster.x-k8s.io/md-a -n ns`" + `, and the log of provider infrastructure.cluster.x-k8s.io

Newest warnings about ToyMachine/md-a:
  - 60s ago: FailedCreate: no hosts in zone a

Also found:
  - Machine/cp-1: its Node node-cp-1 is not healthy: Node cp-1 does not exist (NodeUnhealthy, for 5m)

Could not be read:
  - Deployments of the providers: the user of the kubeconfig may not list them
`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			in := changed(t, tc.changes)
			in.Unread = tc.unread
			b := &strings.Builder{}
			if err := Write(b, Explain(in), testTime); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), b.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestWriteLimitsOthers checks that a report of many causes stays short.
func TestWriteLimitsOthers(t *testing.T) {
	r := Report{Cluster: Object{Namespace: "ns", Name: "c1"}}
	for i := range 50 {
		r.Causes = append(r.Causes, Cause{Reason: "NodeUnhealthy", Object: Object{Kind: "Machine", Name: fmt.Sprint("m", i)}})
	}
	b := &strings.Builder{}
	if err := Write(b, r, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "NodeUnhealthy") != maxOthers+1 || !strings.Contains(got, "... and 39 more: see -o json") {
		t.Errorf("got:\n%s", got)
	}
}
