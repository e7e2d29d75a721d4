package machineset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// remediation is a MachineSet of a MachineDeployment with Machines over a fake API server.
type remediation struct {
	*Controller
	api   *fakeapi.Server
	build object.Builder
	set   *clusterv1.MachineSet
}

// newRemediation creates Machines from words such as "m1:sick" or "m2:leaving"; m1 is the oldest.
func newRemediation(t *testing.T, md *clusterv1.MachineDeployment, machines ...string) *remediation {
	t.Helper()
	r := &remediation{}
	r.set = r.build.MachineSet("s", func(set *clusterv1.MachineSet) {
		set.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2"}
	})
	objects := []client.Object{r.build.Cluster(), r.set}
	if md != nil {
		object.ControlledBy(r.set, md)
		objects = append(objects, md)
	}
	for i, word := range machines {
		name, state, _ := strings.Cut(word, ":")
		m := object.ControlledBy(r.build.Machine(name), r.set)
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: r.set.Spec.ClusterName}
		maps.Copy(m.Labels, r.set.Spec.Selector.MatchLabels)
		m.CreationTimestamp = metav1.NewTime(object.Now().Add(time.Duration(i) * time.Hour))
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		if state == "sick" || state == "leaving" {
			condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
		}
		if state == "leaving" || state == "gone" {
			m.DeletionTimestamp = ptr.To(metav1.NewTime(object.Now()))
		}
		objects = append(objects, m)
	}
	r.api = fakeapi.New(t, fakeapi.Options{Objects: objects})
	r.Controller = newController(r.api.ForController(), true)
	return r
}

// run takes the steps collect and remediate, and returns each Machine that is marked or leaving, with its message; one
// that stays cannot be remediated, according to v1beta2.
func (r *remediation) run(t *testing.T) []string {
	t.Helper()
	s := &scope{set: r.set, cluster: r.build.Cluster()}
	for _, step := range []string{"collect", "remediate"} {
		if _, err := steptest.Run(t.Context(), r.set, s, r.declared().Step(step)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.problems...); err != nil {
		t.Fatal(err)
	}
	list := &clusterv1.MachineList{}
	testenv.Must(t, r.api.Client.List(t.Context(), list))
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	var out []string
	for i := range list.Items {
		m := &list.Items[i]
		c := condition.Get(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		switch {
		case !m.DeletionTimestamp.IsZero():
			out = append(out, m.Name+" leaves")
		case c != nil:
			verb := "waits"
			if r := report.Get(m, clusterv1.MachineOwnerRemediatedCondition); r != nil && r.Reason == clusterv1.MachineOwnerRemediatedCannotBeRemediatedReason {
				verb = "stays"
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", m.Name, verb, c.Message)))
		}
	}
	return out
}

func TestRemediationsInFlight(t *testing.T) {
	const many = " waits Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is %s)"
	const rollout = " stays Machine won't be remediated because it is pending removal due to rollout"
	limit := func(text string, change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
		var build object.Builder
		return build.MachineDeployment("md", append(change, func(md *clusterv1.MachineDeployment) {
			metav1.SetMetaDataAnnotation(&md.ObjectMeta, clusterv1.RevisionAnnotation, "2")
			if md.Spec.Replicas = ptr.To[int32](5); text != "" {
				md.Spec.Remediation.MaxInFlight = ptr.To(intstr.Parse(text))
			}
		})...)
	}
	next := func(md *clusterv1.MachineDeployment) *clusterv1.MachineDeployment {
		md.Annotations[clusterv1.RevisionAnnotation] = "10"
		return md
	}
	onDelete := func(md *clusterv1.MachineDeployment) {
		md.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	}
	tests := []struct {
		reason   string
		md       *clusterv1.MachineDeployment
		machines []string
		want     []string
	}{
		{"a MachineSet without MachineDeployment has no limit", nil, []string{"m1:sick", "m2:sick"}, []string{"m1 leaves", "m2 leaves"}},
		{"without the field there is no limit", limit(""), []string{"m1:sick", "m2", "m3:sick"}, []string{"m1 leaves", "m3 leaves"}},
		{"the newest first", limit("1"), []string{"m1:sick", "m2:sick", "m3"}, []string{"m1" + fmt.Sprintf(many, "1"), "m2 leaves"}},
		{"those in flight count", limit("1"), []string{"m1:sick", "m2:leaving"}, []string{"m1" + fmt.Sprintf(many, "1"), "m2 leaves"}},
		{"a percentage is rounded up: 21% of 5 are 2", limit("21%"), []string{"m1:sick", "m2:sick", "m3:sick"},
			[]string{"m1" + fmt.Sprintf(many, "21%"), "m2 leaves", "m3 leaves"}},
		{"zero stops remediation", limit("0"), []string{"m1:sick"}, []string{"m1" + fmt.Sprintf(many, "0")}},
		{"a huge number is no limit", limit("2147483647"), []string{"m1:sick", "m2:sick"}, []string{"m1 leaves", "m2 leaves"}},
		{"a rollout replaces the Machines of old MachineSets; revisions are numbers", next(limit("")), []string{"m1:sick"}, []string{"m1" + rollout}},
		{"with OnDelete, nothing replaces them", next(limit("", onDelete)), []string{"m1:sick"},
			[]string{"m1 stays Machine won't be remediated because its template is outdated: delete it"}},
		{"a Machine that is deleted for another reason does not count", limit("1"), []string{"m1:sick", "m2:gone"}, []string{"m1 leaves", "m2 leaves"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := newRemediation(t, tt.md, tt.machines...)
			if diff := cmp.Diff(tt.want, r.run(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRemediationsInFlightWithStaleCache does not take a Machine that is being deleted for one that is not.
func TestRemediationsInFlightWithStaleCache(t *testing.T) {
	var build object.Builder
	md := build.MachineDeployment("md", func(md *clusterv1.MachineDeployment) {
		md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(1))
	})
	r := newRemediation(t, md, "m1:sick", "m2", "m3")
	r.api.Cache.Freeze(&clusterv1.MachineList{})
	newer := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: r.set.Namespace, Name: "m2"}
	testenv.Must(t, r.api.Client.Get(t.Context(), key, newer))
	condition.Set(newer, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
	testenv.Must(t, r.api.Client.Status().Update(t.Context(), newer))
	testenv.Must(t, r.api.Client.Delete(t.Context(), newer))
	got := r.run(t)
	if len(got) != 2 || !strings.HasPrefix(got[0], "m1 waits Waiting because") || got[1] != "m2 leaves" {
		t.Errorf("got %q; want m1 to wait until m2 is gone", got)
	}
}
