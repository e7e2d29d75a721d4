package campaign

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

func calm() *Result {
	r := &Result{}
	for i, manager := range []string{core, bootstrap, controlPlane, inMemory} {
		r.Records = append(r.Records, script.Record{Request: request.Request{Manager: manager, Verb: "patch", Resource: "machines"}, Nth: i + 1})
	}
	return r
}

// A seed says everything, and what it draws can be written down and read.
func TestFamiliesAreRepeatable(t *testing.T) {
	for _, family := range Families() {
		first := family.Faults(calm(), rand.New(rand.NewPCG(7, 0)))
		if len(first) == 0 {
			t.Errorf("%s makes no runs", family.Name)
		}
		if diff := cmp.Diff(first, family.Faults(calm(), rand.New(rand.NewPCG(7, 0)))); diff != "" {
			t.Errorf("%s draws something else from the same seed:\n%s", family.Name, diff)
		}
		for _, faults := range first {
			for _, f := range faults {
				if again, err := script.Parse(f.String()); err != nil || again != f {
					t.Errorf("%s: %s is read as %s, %v", family.Name, f, again, err)
				}
			}
		}
	}
}

func TestEveryWriteIsAPlaceForAKill(t *testing.T) {
	var got []string
	for _, faults := range Families()[0].Faults(calm(), nil) {
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
