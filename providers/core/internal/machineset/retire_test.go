package machineset

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// named returns a Machine with a name of a generation.
func named(name string, generation int, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := machine(name, 0, change...)
	m.UID = types.UID(name)
	if generation > 0 {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, generationAnnotation, strconv.Itoa(generation))
	}
	return m
}

func remediated(m *clusterv1.Machine) {
	condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, "", ""))
}

func TestRetire(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		annotation string // of the set
		machines   []*clusterv1.Machine
		change     change
		peak       int // recorded number of names of the current generation in use
		want       string
	}{
		"New":        {reason: "the first Machines have names of generation 0", change: change{create: 3}},
		"Complete":   {reason: "no Machine is deleted", machines: []*clusterv1.Machine{named("a", 0), named("b", 0)}, peak: 2},
		"ScalingUp":  {reason: "scaling up retires no names", machines: []*clusterv1.Machine{named("a", 0)}, change: change{create: 1}, peak: 1},
		"Deleting":   {reason: "a Machine is being deleted", machines: []*clusterv1.Machine{named("a", 0), named("b", 0, deleting)}, want: "1"},
		"Chosen":     {reason: "a Machine is going to be deleted", machines: []*clusterv1.Machine{named("a", 0), named("b", 0)}, change: change{delete: []*clusterv1.Machine{named("b", 0)}}, want: "1"},
		"Remediated": {reason: "a Machine is going to be remediated", machines: []*clusterv1.Machine{named("a", 0, remediated)}, want: "1"},
		"Earlier":    {reason: "names of previous generations are retired already", annotation: "1", machines: []*clusterv1.Machine{named("a", 0, deleting), named("b", 1)}, want: "1"},
		"Later":      {reason: "names of the current generation are not", annotation: "4", machines: []*clusterv1.Machine{named("a", 0), named("b", 4, deleting)}, want: "5"},
		"Missed":     {reason: "a deletion was not observed", machines: []*clusterv1.Machine{named("a", 0)}, change: change{create: 1}, peak: 2, want: "1"},
		"AllMissed":  {reason: "the deletion of the only Machine was not observed", annotation: "2", change: change{create: 1}, peak: 1, want: "3"},
		"NotNeeded":  {reason: "no name is needed, so none is retired", machines: []*clusterv1.Machine{named("a", 0)}, peak: 2},
		"Lost":       {reason: "the set has lost its annotation, the Machines have theirs", machines: []*clusterv1.Machine{named("a", 6), named("b", 6, deleting)}, want: "7"},
		"Invalid":    {reason: "the annotation is not a number", annotation: "-x", machines: []*clusterv1.Machine{named("a", 0, deleting)}, want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "uid"}}
			if c.annotation != "" {
				set.Annotations = map[string]string{generationAnnotation: c.annotation}
			}
			controller := &Controller{names: newNamesInUse()}
			generation := currentGeneration(set, c.machines)
			var before []*clusterv1.Machine
			for range c.peak {
				before = append(before, named("previous", generation))
			}
			controller.names.observe(set.UID, generation, before)
			s := &scope{set: set, machines: c.machines, change: c.change}
			if _, err := controller.retire(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, set.Annotations[generationAnnotation]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "uid"}}
	seen := map[string]bool{}
	for _, restored := range []string{"", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"} {
		set.Annotations = map[string]string{clusterv1.RestoredAnnotation: restored}
		for generation := range 20 {
			for ordinal := range 20 {
				name, err := nameOf(set, generation, ordinal)
				if again, _ := nameOf(set, generation, ordinal); err != nil || name != again || seen[name] {
					t.Errorf("ordinal %d of generation %d, restored %q, has name %s; want it to be stable and unique", ordinal, generation, restored, name)
				}
				seen[name] = true
			}
		}
	}
}

// TestNamesByTemplate checks that names follow the template, and that one that was admitted by a release without a check cannot loop.
func TestNamesByTemplate(t *testing.T) {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "uid"}, Spec: clusterv1.MachineSetSpec{ClusterName: "c"}}
	plain, err := nameOf(set, 0, 0)
	testenv.Must(t, err)
	set.Spec.MachineNaming.Template = "{{ .cluster.name }}-node-{{ .machineSet.name }}-{{ .random }}"
	if name, err := nameOf(set, 0, 0); err != nil || name != "c-node-"+plain {
		t.Errorf("got %q, %v, want c-node-%s", name, err, plain)
	}
	set.Spec.MachineNaming.Template = "{{ .unknown }}"
	if _, err := nameOf(set, 0, 0); err == nil || !strings.Contains(err.Error(), "spec.machineNaming.template of MachineSet s") {
		t.Errorf("error %v, want one that names the field", err)
	}
}
