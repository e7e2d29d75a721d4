package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// words splits a list of versions.
func words(list string) []string { return strings.Fields(list) }

func TestListed(t *testing.T) {
	const all = "v1.30.0 v1.31.0 v1.31.4 v1.32.1 v1.33.2 v1.34.0 v1.34.3 v1.35.0 v1.36.1"
	for _, tt := range []struct {
		reason                          string
		controlPlane, workers, to, list string
		want                            Chain
		err                             string
	}{
		{reason: "nothing to do", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.30.0", list: all},
		{reason: "one minor version needs no list", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.31.9", list: all,
			want: Chain{words("v1.31.9"), words("v1.31.9")}},
		{reason: "the highest of each minor version between the ends; of the last, the version in the topology", list: all,
			controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.34.0", want: Chain{words("v1.31.4 v1.32.1 v1.33.2 v1.34.0"), words("v1.33.2 v1.34.0")}},
		{reason: "workers stop before the skew is too large, and at the end", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.36.1", list: all,
			want: Chain{words("v1.31.4 v1.32.1 v1.33.2 v1.34.3 v1.35.0 v1.36.1"), words("v1.33.2 v1.36.1")}},
		{reason: "within the skew, workers stop at the end only", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.33.2", list: all,
			want: Chain{words("v1.31.4 v1.32.1 v1.33.2"), words("v1.33.2")}},
		{reason: "older workers stop earlier", controlPlane: "v1.31.4", workers: "v1.30.0", to: "v1.34.0", list: all,
			want: Chain{words("v1.32.1 v1.33.2 v1.34.0"), words("v1.33.2 v1.34.0")}},
		{reason: "workers that are too old for the next step stop at the present version", controlPlane: "v1.33.2", workers: "v1.30.0", to: "v1.34.0", list: all,
			want: Chain{words("v1.34.0"), words("v1.33.2 v1.34.0")}},
		{reason: "the control plane has arrived", controlPlane: "v1.36.1", workers: "v1.33.2", to: "v1.36.1", list: all, want: Chain{nil, words("v1.36.1")}},
		{reason: "no workers", controlPlane: "v1.30.0", to: "v1.36.1", list: all, want: Chain{words("v1.31.4 v1.32.1 v1.33.2 v1.34.3 v1.35.0 v1.36.1"), nil}},
		{reason: "back, which only an annotation allows", controlPlane: "v1.34.0", workers: "v1.33.2", to: "v1.32.1", list: all,
			want: Chain{words("v1.32.1"), words("v1.32.1")}},
		{reason: "another major version has no chain", controlPlane: "v1.34.0", workers: "v1.34.0", to: "v2.0.0", list: all,
			want: Chain{words("v2.0.0"), words("v2.0.0")}},
		{reason: "a minor version is not listed", controlPlane: "v1.30.0", to: "v1.33.0", list: "v1.30.0 v1.31.0 v1.33.0",
			err: "the upgrade from v1.30.0 to v1.33.0 needs a version v1.32.x, and spec.kubernetesVersions has none: add one"},
	} {
		got, err := Ends{tt.controlPlane, tt.workers, tt.to}.Listed(words(tt.list))
		if diff := cmp.Diff(tt.want, got); diff != "" || fmt.Sprint(err) != orNil(tt.err) {
			t.Errorf("%s: %v, want %s\n%s", tt.reason, err, orNil(tt.err), diff)
		}
	}
}

func orNil(message string) string {
	if message == "" {
		return "<nil>"
	}
	return message
}

func TestChecked(t *testing.T) {
	for _, tt := range []struct {
		reason                    string
		controlPlane, workers, to string
		chain, want               Chain
		err                       string
	}{
		{reason: "valid", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.32.0",
			chain: Chain{words("v1.30.5 v1.31.2 v1.32.0"), words("v1.30.5 v1.31.2 v1.32.0")}, want: Chain{words("v1.30.5 v1.31.2 v1.32.0"), words("v1.30.5 v1.31.2 v1.32.0")}},
		{reason: "no versions of workers: as few as possible", controlPlane: "v1.30.0", workers: "v1.29.0", to: "v1.33.0",
			chain: Chain{words("v1.31.0 v1.32.0 v1.33.0"), nil}, want: Chain{words("v1.31.0 v1.32.0 v1.33.0"), words("v1.32.0 v1.33.0")}},
		{reason: "versions of workers that do not exist are dropped", controlPlane: "v1.30.0", to: "v1.31.0",
			chain: Chain{words("v1.31.0"), words("v1.31.0")}, want: Chain{words("v1.31.0"), nil}},
		{reason: "workers may stop at the present version of the control plane", controlPlane: "v1.31.0", workers: "v1.30.0", to: "v1.32.0",
			chain: Chain{words("v1.32.0"), words("v1.31.0 v1.32.0")}, want: Chain{words("v1.32.0"), words("v1.31.0 v1.32.0")}},
		{reason: "only build metadata changes, downwards, too", controlPlane: "v1.31.0+b", workers: "v1.31.0+b", to: "v1.31.0+a",
			chain: Chain{words("v1.31.0+a"), words("v1.31.0+a")}, want: Chain{words("v1.31.0+a"), words("v1.31.0+a")}},
		{reason: "an empty answer", controlPlane: "v1.30.0", to: "v1.31.0", err: "versions of the control plane: an empty list must end with v1.31.0"},
		{reason: "another target", controlPlane: "v1.30.0", to: "v1.31.0", chain: Chain{words("v1.31.1"), nil},
			err: "versions of the control plane: v1.31.1 must end with v1.31.0"},
		{reason: "not ascending", controlPlane: "v1.30.0", to: "v1.31.0", chain: Chain{words("v1.30.0 v1.31.0"), nil},
			err: "versions of the control plane: v1.30.0 must be higher than v1.30.0"},
		{reason: "a skipped minor version", controlPlane: "v1.30.0", to: "v1.32.0", chain: Chain{words("v1.32.0"), nil},
			err: "versions of the control plane: v1.32.0 is 2 minor versions above v1.30.0: at most 1 are possible"},
		{reason: "no version", controlPlane: "v1.30.0", to: "v1.31.0", chain: Chain{words("1.30.1 v1.31.0"), nil},
			err: `versions of the control plane: "1.30.1" must be a semantic version with a leading "v", such as v1.30.2`},
		{reason: "workers at a version that the control plane never has", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.31.0",
			chain: Chain{words("v1.31.0"), words("v1.30.7 v1.31.0")}, err: "versions of workers: v1.30.7 must be a version of the control plane: one of v1.30.0, v1.31.0"},
		{reason: "the skew is too large", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.34.0",
			chain: Chain{words("v1.31.0 v1.32.0 v1.33.0 v1.34.0"), words("v1.34.0")},
			err:   "versions of workers: v1.34.0 is 4 minor versions above v1.30.0: at most 3 are possible"},
		{reason: "workers do not arrive", controlPlane: "v1.30.0", workers: "v1.30.0", to: "v1.32.0", chain: Chain{words("v1.31.0 v1.32.0"), words("v1.31.0")},
			err: "versions of workers: v1.31.0 must end with v1.32.0"},
		{reason: "the control plane has arrived", controlPlane: "v1.32.0", workers: "v1.30.0", to: "v1.32.0", chain: Chain{words("v1.32.0"), words("v1.32.0")},
			err: "versions of the control plane: there must be none, because it already has v1.32.0"},
	} {
		got, err := Ends{tt.controlPlane, tt.workers, tt.to}.Checked(tt.chain)
		if diff := cmp.Diff(tt.want, got); diff != "" || fmt.Sprint(err) != orNil(tt.err) {
			t.Errorf("%s: %v, want %s\n%s", tt.reason, err, orNil(tt.err), diff)
		}
	}
}

// chained is an upgrade of a class with versions, which is simulated.
type chained struct {
	Input
	versions []string
}

func (c *chained) compute(t *testing.T) Plan {
	t.Helper()
	var err error
	if c.Chain, err = c.Ends().Listed(c.versions); err != nil {
		t.Fatal(err)
	}
	return Compute(c.Input)
}

// carryOut stores what a plan changes, and returns that. Parts that get another version are upgrading until the next plan.
func (c *chained) carryOut(p Plan) []string {
	var out []string
	c.ControlPlane.Upgrading = p.Starts()
	if p.Starts() {
		out = append(out, "cp "+p.ControlPlane)
		c.ControlPlane.Version = p.ControlPlane
	}
	for i := range c.MachineDeployments {
		w := &c.MachineDeployments[i]
		version, planned := p.MachineDeployments.Versions[w.TopologyName]
		w.Upgrading = planned && version != w.Version
		if w.Upgrading {
			out = append(out, w.TopologyName+" "+version)
			w.Version, w.Exists, w.Object = version, true, "c-"+w.TopologyName
		}
	}
	c.Step = p.Step
	return out
}

func from(version string, workers ...string) *chained {
	c := &chained{versions: words("v1.30.0 v1.31.0 v1.32.0 v1.33.0 v1.34.0 v1.35.0")}
	c.Version, c.ControlPlane = "v1.35.0", ControlPlane{Exists: true, Version: version}
	for i, v := range workers {
		c.MachineDeployments = append(c.MachineDeployments, Workers{TopologyName: fmt.Sprintf("md%d", i), Exists: v != "", Version: v, Object: fmt.Sprintf("c-md%d", i)})
	}
	return c
}

// pinned gives one of the workers a version of their own.
func (c *chained) pinned(i int, version string) *chained {
	c.MachineDeployments[i].Pinned = version
	return c
}

// TestChain is a whole upgrade, one change after the other, with what the Cluster records. Whatever a plan recorded last, another manager
// goes on with the same changes.
func TestChain(t *testing.T) {
	for _, tt := range []struct {
		reason string
		in     func() *chained
		want   []string
	}{
		{"workers stop where they must", func() *chained { return from("v1.30.0", "v1.30.0", "v1.30.0") }, []string{
			"cp v1.31.0 step v1.31.0", "cp v1.32.0 step v1.32.0", "cp v1.33.0 step v1.33.0", "md0 v1.33.0 step v1.33.0", "md1 v1.33.0 step v1.33.0",
			"cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0", "md0 v1.35.0 step v1.35.0", "md1 v1.35.0 step v1.35.0",
		}},
		{"workers that are ahead need no stop", func() *chained { return from("v1.32.0", "v1.30.0", "v1.32.0") }, []string{
			"cp v1.33.0 step v1.33.0", "md0 v1.33.0 step v1.33.0", "cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0",
			"md0 v1.35.0 step v1.35.0", "md1 v1.35.0 step v1.35.0",
		}},
		{"new workers get the last version", func() *chained { return from("v1.33.0", "") }, []string{
			"cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0", "md0 v1.35.0",
		}},
		{"pinned workers need no stop", func() *chained { return from("v1.32.0", "v1.32.0", "v1.32.0").pinned(1, "v1.32.0") }, []string{
			"cp v1.33.0 step v1.33.0", "cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0", "md0 v1.35.0 step v1.35.0",
		}},
		{"a higher version of pinned workers waits until the control plane is stable", func() *chained {
			return from("v1.32.0", "v1.32.0").pinned(0, "v1.33.0")
		}, []string{"cp v1.33.0 step v1.33.0", "cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0", "md0 v1.33.0"}},
		{"and until other workers are upgraded", func() *chained { return from("v1.31.0", "v1.30.0", "v1.31.0").pinned(1, "v1.33.0") }, []string{
			"cp v1.32.0 step v1.32.0", "cp v1.33.0 step v1.33.0", "md0 v1.33.0 step v1.33.0", "cp v1.34.0 step v1.34.0", "cp v1.35.0 step v1.35.0",
			"md0 v1.35.0 step v1.35.0", "md1 v1.33.0",
		}},
		{"an upgrade of one step records nothing", func() *chained { return from("v1.34.0", "v1.34.0") }, []string{"cp v1.35.0", "md0 v1.35.0"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			for _, interrupted := range []bool{false, true} {
				c, got := tt.in(), []string(nil)
				for range 50 {
					p := c.compute(t)
					if interrupted && c.Step != p.Step && p.Starts() {
						c.Step = p.Step // The record is written, and the manager is killed.
						p = c.compute(t)
					}
					for _, change := range c.carryOut(p) {
						if c.Step != "" {
							change += " step " + c.Step
						}
						got = append(got, change)
					}
					if p.Complete() {
						break
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" || c.Step != "" {
					t.Errorf("interrupted %v, step %q:\n%s", interrupted, c.Step, diff)
				}
			}
		})
	}
}

// TestChainMessages has what the condition reports on the way.
func TestChainMessages(t *testing.T) {
	for _, tt := range []struct {
		reason string
		in     *chained
		change func(*chained)
		want   []string
	}{
		{"the first step begins", from("v1.31.0", "v1.31.0"), func(*chained) {}, []string{
			"KubeadmControlPlane upgrading to version v1.32.0 (v1.33.0, v1.34.0, v1.35.0 pending)", "MachineDeployment c-md0 pending upgrade to version v1.34.0, v1.35.0",
		}},
		{"a hook holds it", from("v1.32.0"), func(c *chained) { c.ControlPlaneHeld = true }, []string{
			"KubeadmControlPlane pending upgrade to version v1.33.0, v1.34.0, v1.35.0",
		}},
		{"workers stop at an intermediate version", from("v1.33.0", "v1.30.0", "v1.30.0"), func(*chained) {}, []string{
			"KubeadmControlPlane pending upgrade to version v1.34.0, v1.35.0", "MachineDeployment c-md0 upgrading to version v1.33.0 (v1.35.0 pending)",
			"MachineDeployment c-md1 pending upgrade to version v1.33.0, v1.35.0",
		}},
		{"workers that a user defers hold the control plane", from("v1.33.0", "v1.30.0"), func(c *chained) { c.MachineDeployments[0].Deferred = true }, []string{
			"KubeadmControlPlane pending upgrade to version v1.34.0, v1.35.0",
			"MachineDeployment c-md0 upgrade to version v1.33.0 deferred using defer-upgrade or hold-upgrade-sequence annotations",
		}},
	} {
		tt.change(tt.in)
		_, message, _ := tt.in.compute(t).Upgrading("KubeadmControlPlane", "")
		if diff := cmp.Diff(slices.Concat([]string{"Cluster is upgrading to v1.35.0"}, tt.want), strings.Split(message, "\n  * ")); diff != "" {
			t.Errorf("%s:\n%s", tt.reason, diff)
		}
	}
}

// TestOnHold is about changes besides the version: a control plane that waits for an upgrade to begin is not changed until then, one at an
// intermediate version is.
func TestOnHold(t *testing.T) {
	before, between := from("v1.32.0"), from("v1.33.0", "v1.30.0")
	before.ControlPlaneHeld = true
	between.Step = "v1.33.0"
	if !before.compute(t).ControlPlaneOnHold || between.compute(t).ControlPlaneOnHold {
		t.Errorf("on hold before %v and between %v the steps, want true and false",
			before.compute(t).ControlPlaneOnHold, between.compute(t).ControlPlaneOnHold)
	}
	if from("v1.32.0").compute(t).ControlPlaneOnHold {
		t.Error("the control plane that gets a version now is on hold")
	}
}
