package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// TestTable checks that actions have colors on a terminal, and that names cannot change them.
func TestTable(t *testing.T) {
	hostile := topologyplan.Change{Action: topologyplan.Created, After: thing("\x1b[31mred", 1)}
	for color, want := range map[bool]string{
		false: "  NAMESPACE  KIND   NAME       ACTION\n" +
			"  ns         Thing  new        created\n" +
			"  ns         Thing  old        modified\n" +
			"  ns         Thing  gone       deleted\n" +
			"  ns         Thing  ^[[31mred  created\n\n",
		true: "  NAMESPACE  KIND   NAME       ACTION\n" +
			"  ns         Thing  new        \x1b[32mcreated\x1b[0m\n" +
			"  ns         Thing  old        \x1b[33mmodified\x1b[0m\n" +
			"  ns         Thing  gone       \x1b[31mdeleted\x1b[0m\n" +
			"  ns         Thing  ^[[31mred  \x1b[32mcreated\x1b[0m\n\n",
	} {
		streams, buffers := iostreams.Test()
		streams.SetOutColor(color)
		if err := (&Options{IO: streams}).table(append(changes(), hostile)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, buffers.Out.String()); diff != "" {
			t.Errorf("with colors %t: -want +got:\n%s", color, diff)
		}
	}
}
