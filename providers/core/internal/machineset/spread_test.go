package machineset

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func in(domain string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
}

func TestNextDomain(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		annotation *string
		template   string
		domains    []string
		machines   []*clusterv1.Machine
		want       string
		wantErr    string
	}{
		{reason: "without the annotation, the template decides", domains: []string{"a", "b"}},
		{reason: "the failure domain of the template precedes the annotation", annotation: new(""), template: "b", domains: []string{"a", "b"}, want: "b"},
		{reason: "a Cluster without failure domains", annotation: new("")},
		{reason: "the first one by name", annotation: new(""), domains: []string{"b", "a"}, want: "a"},
		{reason: "the one with the fewest Machines", annotation: new(""), domains: []string{"a", "b", "c"}, want: "b", machines: []*clusterv1.Machine{
			machine("1", 0, in("a")), machine("2", 0, in("b")), machine("3", 0, in("c")), machine("4", 0, in("a")), machine("5", 0, in("c")),
		}},
		{reason: "Machines that are being deleted do not count", annotation: new(""), domains: []string{"a", "b"}, want: "a", machines: []*clusterv1.Machine{
			machine("1", 0, in("a"), deleting), machine("2", 0, in("b")),
		}},
		{reason: "only those that the annotation names", annotation: new("c, b"), domains: []string{"a", "b", "c"}, want: "b"},
		{
			reason: "a failure domain that the Cluster does not have", annotation: new("a,x"), domains: []string{"a", "b"},
			wantErr: `annotation machineset.cluster.x-k8s.io/spread-over-failure-domains of MachineSet s: Cluster c has no failure domain "x"; it has a, b`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			set := object.Builder{ClusterName: "c"}.MachineSet("s", func(set *clusterv1.MachineSet) {
				set.Spec.Template.Spec.FailureDomain = tc.template
				if tc.annotation != nil {
					set.Annotations = map[string]string{clusterv1.MachineSetSpreadAnnotation: *tc.annotation}
				}
			})
			cluster := object.Builder{ClusterName: "c"}.Cluster()
			for _, name := range tc.domains {
				cluster.Status.FailureDomains = append(cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: name})
			}
			got, err := nextDomain(set, cluster, tc.machines)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("the error is %v, want %s", err, tc.wantErr)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSpreadDeletion(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		order    clusterv1.MachineSetDeletionOrder
		machines []*clusterv1.Machine
		n        int
		want     []string
	}{
		{reason: "where there are most, then the name", n: 3, want: []string{"3", "4", "1"}, machines: []*clusterv1.Machine{
			machine("1", 0, in("a")), machine("2", 0, in("b")), machine("3", 0, in("c")), machine("4", 0, in("c")), machine("5", 0, in("c")),
		}},
		{reason: "a Machine that is marked for deletion comes first", n: 2, want: []string{"1", "2"}, machines: []*clusterv1.Machine{
			machine("1", 0, in("a"), marked), machine("2", 0, in("b")), machine("3", 0, in("b")),
		}},
		{reason: "the oldest come first, as asked for", order: "Oldest", n: 2, want: []string{"1", "2"}, machines: []*clusterv1.Machine{
			machine("1", 3*time.Hour, in("a")), machine("2", 2*time.Hour, in("b")), machine("3", time.Hour, in("b")),
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			set := object.Builder{ClusterName: "c"}.MachineSet("s", func(set *clusterv1.MachineSet) {
				set.Annotations = map[string]string{clusterv1.MachineSetSpreadAnnotation: ""}
				set.Spec.Deletion.Order = tc.order
			})
			var got []string
			for _, m := range toDelete(set, tc.machines, tc.n, object.Now()) {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
