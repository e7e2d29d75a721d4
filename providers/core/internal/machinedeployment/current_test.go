package machinedeployment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestCurrentOfPlans compares Current, which other programs call, with what the controller chooses for the same objects.
func TestCurrentOfPlans(t *testing.T) {
	day := func(n int) metav1.Time { return metav1.NewTime(object.Now().AddDate(0, 0, n)) }
	other := func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "changed-at-admission" }
	// own returns the set that the controller creates for a deployment, with a template that is not the deployment's.
	own := func(md *clusterv1.MachineDeployment) *clusterv1.MachineSet {
		id := identityOf(md, time.Time{})
		set := object.ControlledBy(machineSet(id.name, 1, 1, other), md)
		set.Labels[clusterv1.MachineDeploymentUniqueLabel] = id.hash
		return set
	}
	edit := func(set *clusterv1.MachineSet, field string) *clusterv1.MachineSet {
		set.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "user", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: clusterv1.GroupVersion.String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:` + field + `":{}}}}}`),
		}}
		return set
	}
	for _, tc := range []struct {
		reason string
		after  metav1.Time
		sets   func(*clusterv1.MachineDeployment) []*clusterv1.MachineSet
		// want is the index of the current set, -1 if there is none.
		want int
	}{
		{reason: "there are no sets", want: -1},
		{reason: "the set of the template", want: 1, sets: func(*clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{machineSet("a", 1, 1, other), machineSet("b", 1, 1)}
		}},
		{reason: "rolloutAfter has passed since the set was created", after: day(-2), want: -1, sets: func(*clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{machineSet("a", 3, 1)}
		}},
		{reason: "the set was created after rolloutAfter", after: day(-2), want: 0, sets: func(*clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{machineSet("a", 1, 1)}
		}},
		{reason: "rolloutAfter is in the future", after: day(2), want: 0, sets: func(*clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{machineSet("a", 3, 1)}
		}},
		{reason: "the deployment's own set stays current if admission changed its template", want: 0, sets: func(md *clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{own(md)}
		}},
		{reason: "a set whose template a user edited is replaced", want: -1, sets: func(md *clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{edit(own(md), "failureDomain")}
		}},
		{reason: "a set whose minReadySeconds a user edited is not replaced", want: 0, sets: func(md *clusterv1.MachineDeployment) []*clusterv1.MachineSet {
			return []*clusterv1.MachineSet{edit(own(md), "minReadySeconds")}
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			md := machineDeployment(tc.after)
			var sets []*clusterv1.MachineSet
			if tc.sets != nil {
				sets = tc.sets(md)
			}
			var want *clusterv1.MachineSet
			if tc.want >= 0 {
				want = sets[tc.want]
			}
			if got := Current(md, sets, object.Now()); got != want {
				t.Errorf("Current is %v, want %v", got, want)
			}
			if s, _ := chosen(t, md, sets...); s.current != want {
				t.Errorf("the controller chooses %v, want %v", s.current, want)
			}
		})
	}
}
