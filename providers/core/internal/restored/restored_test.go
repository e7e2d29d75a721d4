package restored

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	build  object.Builder
	backup = object.Now()
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// node returns a Node that was created an hour before the backup.
func node(name string, with ...func(*corev1.Node)) corev1.Node {
	n := object.Node(name, with...)
	n.CreationTimestamp = metav1.NewTime(backup.Add(-time.Hour))
	for _, change := range with {
		change(n)
	}
	return *n
}

func newer(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(backup.Add(time.Hour)) }

func of(machine string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations = map[string]string{clusterv1.MachineAnnotation: machine} }
}

func withID(id string) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.ProviderID = id } }

func machine(name string, with ...func(*clusterv1.Machine)) clusterv1.Machine {
	return *build.Machine(name, with...)
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	withNode := object.WithNode("n")
	pool := *build.MachinePool("pool", func(p *clusterv1.MachinePool) { p.Spec.ProviderIDList = []string{"test:///p"} })
	tests := []struct {
		reason   string
		nodes    []corev1.Node
		machines []clusterv1.Machine
		pools    []clusterv1.MachinePool
		want     string
	}{
		{reason: "nothing has happened", nodes: []corev1.Node{node("n", of("m"))}, machines: []clusterv1.Machine{machine("m", withNode)}},
		{reason: "a Machine was created", nodes: []corev1.Node{node("n"), node("new", newer, of("m2"))},
			machines: []clusterv1.Machine{machine("m", withNode)}, want: "Nodes without a Machine: new"},
		{reason: "a Machine was created whose controller has not annotated its Node yet", nodes: []corev1.Node{node("new", newer)},
			want: "Nodes without a Machine: new"},
		{reason: "a Machine was replaced", nodes: []corev1.Node{node("new", newer)}, machines: []clusterv1.Machine{machine("m", withNode)},
			want: "Nodes without a Machine: new; Machines without their Node: m"},
		{reason: "a Machine was replaced by one whose Node has the same name", nodes: []corev1.Node{node("n", newer, withID("other"))},
			machines: []clusterv1.Machine{machine("m", withNode)}, want: "Nodes without a Machine: n; Machines without their Node: m"},
		{reason: "a Machine was deleted", machines: []clusterv1.Machine{machine("m", withNode)}, want: "Machines without their Node: m"},
		{reason: "a Machine that was being deleted is gone", machines: []clusterv1.Machine{machine("m", withNode, object.Deleting)}},
		{reason: "a Machine had no Node yet, and still has none", machines: []clusterv1.Machine{machine("m")}},
		{reason: "a Machine had no provider ID, and its Node has joined", nodes: []corev1.Node{node("m", newer)},
			machines: []clusterv1.Machine{machine("m")}},
		{reason: "the same, with another name, which its annotation tells", nodes: []corev1.Node{node("x", newer, of("m"))},
			machines: []clusterv1.Machine{machine("m")}},
		{reason: "a Machine had no Node, but a provider ID", nodes: []corev1.Node{node("x", newer, withID("id"))},
			machines: []clusterv1.Machine{machine("m", func(m *clusterv1.Machine) { m.Spec.ProviderID = "id" })}},
		{reason: "a Node that never had a Machine", nodes: []corev1.Node{node("foreign")}},
		{reason: "an old Node of a Machine that is missing in the backup", nodes: []corev1.Node{node("n", of("lost"))},
			want: "Nodes without a Machine: n"},
		{reason: "a Node of a pool", nodes: []corev1.Node{node("p", newer)}, pools: []clusterv1.MachinePool{pool}},
		{reason: "a Node that a pool of the cloud has created: the pool is going to report it", nodes: []corev1.Node{node("q", newer,
			func(n *corev1.Node) {
				n.Annotations = map[string]string{clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: "pool"}
			})}, pools: []clusterv1.MachinePool{pool}},
		{reason: "many Nodes", nodes: []corev1.Node{node("g", newer), node("f", newer), node("e", newer), node("d", newer), node("c", newer),
			node("b", newer), node("a", newer)}, want: "Nodes without a Machine: a, b, c, d, e, ... (2 more)"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			got := differences(backup, test.nodes, test.machines, test.pools)
			if diff := cmp.Diff(test.want, got.String()); diff != "" || got.none() != (test.want == "") {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestoredClusters(t *testing.T) {
	t.Parallel()
	const prefix = "The Cluster was restored from a backup of 2026-01-02T03:04:05Z, and is paused: "
	mark := func(c *clusterv1.Cluster) {
		c.Annotations = map[string]string{clusterv1.PausedByRestoreAnnotation: backup.Format(time.RFC3339), clusterv1.RestoredAnnotation: "x"}
	}
	outdated := func(c *clusterv1.Cluster) {
		condition.Set(c, condition.False(clusterv1.BackupUpToDateV1Beta1Condition, clusterv1.ConditionSeverityWarning, "BackupOutdated", ""))
		report.Set(c, 1, backup, report.False(clusterv1.ClusterBackupUpToDateCondition, "BackupOutdated", ""))
	}
	nodes := []corev1.Node{node("n")}
	tests := []struct {
		reason  string
		cluster []func(*clusterv1.Cluster)
		nodes   []corev1.Node
		err     error
		// wantPaused and wantMarked are of the Cluster, want is its condition.
		wantPaused, wantMarked bool
		want                   string
	}{
		{reason: "Machines and Nodes match", cluster: []func(*clusterv1.Cluster){mark, object.Paused, outdated}, nodes: nodes},
		{reason: "they do not match", cluster: []func(*clusterv1.Cluster){mark, object.Paused}, nodes: append(nodes, node("new", newer)),
			wantPaused: true, wantMarked: true, want: "False BackupOutdated " + prefix +
				"Nodes without a Machine: new; compare them, and set spec.paused to false"},
		{reason: "the workload cluster does not respond", cluster: []func(*clusterv1.Cluster){mark, object.Paused},
			err: &remote.NotConnectedError{}, wantPaused: true, wantMarked: true, want: "False NodesNotRead " + prefix +
				"the Nodes of the workload cluster could not be read yet; to resume it anyway, set spec.paused to false"},
		{reason: "a user has resumed it", cluster: []func(*clusterv1.Cluster){mark, outdated}, nodes: append(nodes, node("new", newer))},
		{reason: "a user has paused it", cluster: []func(*clusterv1.Cluster){object.Paused}, nodes: nodes, wantPaused: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			server := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{build.Cluster(test.cluster...), build.Machine("m", object.WithNode("n"))}})
			c := &Controller{Clients: server.ForController(), nodes: func(context.Context, types.NamespacedName) ([]corev1.Node, error) {
				return test.nodes, test.err
			}}
			cluster := build.Cluster()
			key := client.ObjectKeyFromObject(cluster)
			if _, err := c.declared().Runner(c.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			testenv.Must(t, server.Get(t.Context(), key, cluster))
			got := ""
			if found := condition.Get(cluster, clusterv1.BackupUpToDateV1Beta1Condition); found != nil {
				got = string(found.Status) + " " + found.Reason + " " + found.Message
			}
			if found := report.Get(cluster, clusterv1.ClusterBackupUpToDateCondition); (found == nil) != (got == "") ||
				found != nil && got != string(found.Status)+" "+found.Reason+" "+found.Message {
				t.Errorf("the condition is %s in one version, and %v in the other", got, found)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if paused := ptr.Deref(cluster.Spec.Paused, false); paused != test.wantPaused || marked(cluster) != test.wantMarked {
				t.Errorf("paused %v, marked %v, want %v, %v", paused, marked(cluster), test.wantPaused, test.wantMarked)
			}
		})
	}
}
