package plan

import (
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// complete has everything that a step needs.
	complete := func(change func(f *Facts)) Facts {
		f := Facts{
			Step: "Reissue", Begun: true, Now: at.Add(time.Minute), Distributed: true, Published: true, Kubeconfig: true,
			ControlPlane: Machines{Replace: true, Since: at, Requested: true, Total: 3, Replaced: 3}, Rollouts: 1, Needed: 1,
			Inspected: true, Settled: true,
			Workers: Machines{Replace: true, Since: at, Requested: true, Total: 2, Replaced: 2},
		}
		change(&f)
		return f
	}
	for _, tt := range []struct {
		reason string
		facts  Facts
		want   Action
		waits  string
	}{
		{"nothing has begun", Facts{}, Begin, ""},
		{"a paused rotation begins no step", Facts{Paused: true}, Pause, "the step begins"},
		{"Secrets come first", Facts{Begun: true}, Distribute, ""},
		{"then what new machines need", Facts{Begun: true, Distributed: true}, Publish, ""},
		{"our own access must work before a Machine is replaced", Facts{Begun: true, Distributed: true, Published: true}, Await, "kubeconfig"},
		{"the time is recorded before a Machine is replaced", Facts{Begun: true, Distributed: true, Published: true, Kubeconfig: true}, Mark, ""},
		{"a Machine created in the same second may have old certificates", complete(func(f *Facts) { f.Now = at.Add(-time.Millisecond) }), Await, "next second"},
		{"the rollout begins", complete(func(f *Facts) { f.ControlPlane.Requested = false }), RestartControlPlane, ""},
		{"a paused rotation begins no rollout", complete(func(f *Facts) { f.ControlPlane.Requested, f.Paused = false, true }), Pause, "the Machines of the control plane are replaced"},
		{"a paused rotation still says how far a rollout is", complete(func(f *Facts) { f.ControlPlane.Replaced, f.Paused = 1, true }), Await, "1 of 3"},
		{"workers wait for the control plane", complete(func(f *Facts) { f.ControlPlane.Replaced, f.Workers = 2, Machines{Replace: true} }), Await, "2 of 3"},
		{"and for its old Machines to go", complete(func(f *Facts) { f.ControlPlane.Pending = "old Machines" }), Await, "old Machines"},
		{"what Machines have got is read once", complete(func(f *Facts) { f.Inspected = false }), Inspect, ""},
		{"it is read in a paused rotation, too", complete(func(f *Facts) { f.Inspected, f.Paused = false, true }), Inspect, ""},
		{"Machines with old certificates are replaced again", complete(func(f *Facts) { f.Outdated = true }), Mark, ""},
		{"but not for ever", complete(func(f *Facts) { f.Outdated, f.Rollouts = true, 3 }), Await, "bootstrap provider"},
		{"kubelets with certificates of the old CA", complete(func(f *Facts) { f.Needed = 2 }), Mark, ""},
		{"tokens and ConfigMaps, before workers", complete(func(f *Facts) { f.Settled, f.Workers.Since = false, time.Time{} }), Settle, ""},
		{"workers have a time of their own", complete(func(f *Facts) { f.Workers.Since = time.Time{} }), MarkWorkers, ""},
		{"which has to come", complete(func(f *Facts) { f.Workers.Since = f.Now.Add(time.Second) }), Await, "next second"},
		{"then they are replaced", complete(func(f *Facts) { f.Workers.Requested = false }), RestartWorkers, ""},
		{"and awaited", complete(func(f *Facts) { f.Workers.Replaced = 1 }), Await, "1 of 2 other Machines are replaced"},
		{"users replace machines of pools", complete(func(f *Facts) { f.Pools = "you" }), Await, "you"},
		{"all is done", complete(func(*Facts) {}), Finish, ""},
		{"a paused rotation does not end a step", complete(func(f *Facts) { f.Paused = true }), Pause, "the step is complete"},
		{"without workers", complete(func(f *Facts) { f.Workers = Machines{} }), Finish, ""},
	} {
		got, waits := Next(tt.facts)
		if got != tt.want || !strings.Contains(waits, tt.waits) {
			t.Errorf("%s: %s %q, want %s %q", tt.reason, got, waits, tt.want, tt.waits)
		}
	}
}
