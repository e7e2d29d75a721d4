package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	machine := Write{Kind: "Machine", Group: domain, Namespace: "ns", Name: "m", Effect: difference.Created}
	for _, tc := range []struct {
		reason string
		result Result
		want   int
	}{
		{reason: "notes are no writes", result: Result{Notes: []Note{{About: "a"}}}},
		{reason: "a change of a Machine", result: Result{Writes: []Write{{Kind: "Machine", Group: domain, Effect: difference.Changed}}}, want: 2},
		{reason: "a write to a workload cluster", result: Result{WorkloadClusters: []string{"ns/c: PATCH /api/v1/nodes/n"}}, want: 2},
		{reason: "another kind of that name", result: Result{Writes: []Write{{Kind: "Machine", Group: "other", Effect: difference.Deleted}}}, want: 2},
		{reason: "an object that was not reconciled", result: Result{Failed: []Failure{{Controller: "a"}}}, want: 4},
		{
			reason: "writes, and an object that was not reconciled",
			result: Result{Failed: []Failure{{Controller: "a"}}, WorkloadClusters: []string{"ns/c: PATCH /"}}, want: 2,
		},
		{reason: "a created Machine", result: Result{Writes: []Write{machine}}, want: 3},
		{reason: "a deleted Machine", result: Result{Writes: []Write{{Kind: "Machine", Group: domain, Effect: difference.Deleted}}}, want: 3},
	} {
		if got := tc.result.ExitCode(); got != tc.want {
			t.Errorf("%s: exit status %d, want %d", tc.reason, got, tc.want)
		}
	}
}

// Creations, deletions, metadata and spec are always writes. Of statuses, what depends on what the copy cannot know is not computed.
func TestComputed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, kind, name, cluster string
		object                      difference.Object
		want                        []string
		dropped                     bool
	}{
		{reason: "a spec of an unread cluster", kind: "Machine", cluster: "unread", object: changed("~ .spec.a", "~ .status.b"), want: []string{"~ .spec.a"}},
		{reason: "a status of an unread cluster", kind: "Machine", cluster: "unread", object: changed("~ .status.b"), dropped: true},
		{reason: "a status of a Cluster that is unread", kind: "Cluster", name: "unread", object: changed("~ .status.b"), dropped: true},
		{reason: "a status of another cluster", kind: "Machine", cluster: "read", object: changed("~ .status.b"), want: []string{"~ .status.b"}},
		{
			reason: "the health of etcd", kind: "KubeadmControlPlane", cluster: "etcd",
			object: changed("~ .status.conditions[EtcdClusterHealthy].status", "~ .status.conditions[Available].status"), dropped: true,
		},
		{
			reason: "how many control plane Machines are ready depends on it", kind: "Cluster", name: "etcd",
			object: changed("~ .status.controlPlane.readyReplicas"), dropped: true,
		},
		{
			reason: "workers are ready without etcd", kind: "Cluster", name: "etcd",
			object: changed("~ .status.workers.readyReplicas"), want: []string{"~ .status.workers.readyReplicas"},
		},
		{
			reason: "other conditions", kind: "KubeadmControlPlane", cluster: "etcd",
			object: changed("~ .status.conditions[ScalingUp].status"), want: []string{"~ .status.conditions[ScalingUp].status"},
		},
		{
			reason: "a MachineDeployment is available without etcd", kind: "MachineDeployment", cluster: "etcd",
			object: changed("~ .status.conditions[Available].status"), want: []string{"~ .status.conditions[Available].status"},
		},
		{reason: "a class with patches of an extension", kind: "ClusterClass", name: "class", object: changed("~ .status.variables[0]"), dropped: true},
		{reason: "a Cluster of that class", kind: "Cluster", name: "of-class", object: changed("~ .status.phase"), dropped: true},
		{reason: "an extension", kind: "ExtensionConfig", object: changed("- .status.handlers[0]"), dropped: true},
		{reason: "conditions that changed and changed back", kind: "Machine", object: difference.Object{Effect: difference.Changed, Times: true}, dropped: true},
		{reason: "a write without a change", kind: "Machine", object: difference.Object{Effect: difference.Changed}, dropped: true},
		{
			reason: "a status that changed and changed back", kind: "MachineSet", dropped: true,
			object: difference.Object{Effect: difference.Changed, Managers: []string{"m Update status"}},
		},
		{reason: "managed fields alone", kind: "Machine", object: difference.Object{Effect: difference.Changed, Managers: []string{"m Apply "}}},
		{reason: "a deletion", kind: "Machine", cluster: "unread", object: difference.Object{Effect: difference.Deleted}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			f := newFacts()
			f.external[types.NamespacedName{Namespace: "ns", Name: "class"}] = true
			f.classes[types.NamespacedName{Namespace: "ns", Name: "of-class"}] = types.NamespacedName{Namespace: "ns", Name: "class"}
			s := &selection{
				facts:  f,
				unread: map[types.NamespacedName]bool{{Namespace: "ns", Name: "unread"}: true},
				etcd:   map[types.NamespacedName]bool{{Namespace: "ns", Name: "etcd"}: true},
			}
			w := Write{Kind: tc.kind, Group: domain, Namespace: "ns", Name: tc.name, Effect: tc.object.Effect, Fields: tc.object.Fields}
			content := &unstructured.Unstructured{Object: map[string]any{}}
			content.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": tc.cluster})
			if got := s.isComputed(&w, &tc.object, content); got == tc.dropped {
				t.Errorf("it is a write: %t", got)
			}
			if diff := cmp.Diff(tc.want, w.Fields); diff != "" && !tc.dropped {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func changed(fields ...string) difference.Object {
	return difference.Object{Effect: difference.Changed, Fields: fields}
}

func TestText(t *testing.T) {
	t.Parallel()
	result := Result{
		Clusters: 2, Objects: 30,
		Writes: []Write{
			{Kind: "Machine", Group: domain, Namespace: "ns", Name: "new", Effect: difference.Created},
			{Kind: "ClusterRole", Name: "gone", Effect: difference.Deleted},
			{Kind: "KubeadmControlPlane", Group: domain, Namespace: "ns", Name: "cp", Effect: difference.Changed, Managers: []string{"capi-topology Apply "}},
		},
		WorkloadClusters: []string{"ns/c: PATCH /api/v1/nodes/n"},
		Notes:            []Note{{About: "providers", Text: "CoreProvider cluster-api v1.7.0", Items: []string{"CoreProvider cluster-api v1.7.0"}}},
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		result.Writes = append(result.Writes, Write{
			Kind: "ClusterClass", Group: domain, Namespace: "ns", Name: name, Effect: difference.Changed, Fields: []string{"~ .status.b", "+ .metadata.a"},
		})
	}
	var out strings.Builder
	if err := result.Text(&out); err != nil {
		t.Fatal(err)
	}
	want := `deleted ClusterRole gone
created Machine ns/new
6 ClusterClasses  + .metadata.a  (ns/a, ns/b, ns/c, ns/d, ns/e and 1 more)
6 ClusterClasses  ~ .status.b  (ns/a, ns/b, ns/c, ns/d, ns/e and 1 more)
1 KubeadmControlPlane  only managed fields of capi-topology Apply  (ns/cp)
workload cluster ns/c: PATCH /api/v1/nodes/n

note: providers: CoreProvider cluster-api v1.7.0

2 Clusters, 30 objects: 10 writes, 1 Machines created or deleted, 1 notes
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
