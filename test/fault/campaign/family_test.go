package campaign

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/fault/script"
)

func writes() []script.Record {
	var all []script.Record
	for i, manager := range []string{core, bootstrap, controlPlane, inMemory} {
		all = append(all, script.Record{Request: script.Request{Manager: manager, Verb: "patch", Resource: "machines"}, Nth: i + 1})
	}
	return all
}

// TestFamiliesAreRepeatable checks that runs depend on the seed only, and that their text form can be parsed.
func TestFamiliesAreRepeatable(t *testing.T) {
	for _, family := range Families() {
		first := family.Faults(writes(), 7)
		if len(first) == 0 {
			t.Errorf("%s has no runs", family.Name)
		}
		if diff := cmp.Diff(first, family.Faults(writes(), 7)); diff != "" {
			t.Errorf("%s has other runs with the same seed:\n%s", family.Name, diff)
		}
		for _, faults := range first {
			for _, f := range faults {
				if again, err := script.Parse(f.String()); err != nil || again != f {
					t.Errorf("%s: %s is parsed as %s, %v", family.Name, f, again, err)
				}
			}
		}
	}
}

// TestRunsDoNotDependOnOtherWrites matters because the writes of the baseline run, and their order, vary slightly.
func TestRunsDoNotDependOnOtherWrites(t *testing.T) {
	for _, family := range Families() {
		all, most := map[string]bool{}, writes()
		for _, faults := range family.Faults(most, 7) {
			all[faults[0].String()] = true
		}
		fewer := []script.Record{most[2], most[0]}
		for _, faults := range family.Faults(fewer, 7) {
			if first := faults[0].String(); !all[first] {
				t.Errorf("%s: %s is a run only if other writes are missing", family.Name, first)
			}
		}
	}
}

func TestShuffleKeepsRelativeOrder(t *testing.T) {
	var all []Case
	for _, faults := range Families()[1].Faults(writes(), 7) {
		all = append(all, Case{Faults: faults})
	}
	c := &Campaign{Seed: 7}
	fewer := slices.Clone(all[5:])
	c.shuffle(all)
	c.shuffle(fewer)
	i := 0
	for _, one := range all {
		if i < len(fewer) && one.Replay() == fewer[i].Replay() {
			i++
		}
	}
	if i < len(fewer) {
		t.Errorf("run %s has another position among more runs", fewer[i].Replay())
	}
}

func TestKillsCoverEveryWrite(t *testing.T) {
	var many []script.Record
	for i := range 2*killStride + 1 {
		many = append(many, script.Record{Request: script.Request{Manager: operator, Verb: "patch", Resource: "coreproviders"}, Nth: i + 1})
	}
	killed := map[int]bool{}
	runs := killAgain(many, 0)
	for _, faults := range runs {
		for _, f := range faults {
			killed[f.Nth] = true
		}
	}
	if len(runs) != killStride || len(killed) != len(many) {
		t.Errorf("%d runs kill the manager after %d writes, want %d and %d", len(runs), len(killed), killStride, len(many))
	}
}

func TestKillAtEveryWrite(t *testing.T) {
	var got []string
	for _, faults := range Families()[0].Faults(writes(), 0) {
		got = append(got, faults[0].String())
	}
	want := []string{
		"cluster-api-controller:patch:machines#1=kill-after", "cluster-api-controller:patch:machines#1=kill-before",
		"kubeadm-bootstrap-controller:patch:machines#2=kill-after", "kubeadm-bootstrap-controller:patch:machines#2=kill-before",
		"kubeadm-control-plane-controller:patch:machines#3=kill-after", "kubeadm-control-plane-controller:patch:machines#3=kill-before",
		"capim-manager:patch:machines#4=kill-after", "capim-manager:patch:machines#4=kill-before",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
