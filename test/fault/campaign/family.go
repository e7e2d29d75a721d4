package campaign

import (
	"math/rand/v2"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Family is a kind of faults: which runs there are of a scenario whose calm run is known.
type Family struct {
	// Name is how it is asked for.
	Name string
	// Standby says that the managers need replicas.
	Standby bool
	// Faults returns the faults of each run. What it draws, it draws from random.
	Faults func(calm *Result, random *rand.Rand) [][]script.Fault
}

// Families returns all of them, the most valuable first.
func Families() []Family {
	return []Family{
		{Name: "kill", Faults: atEveryWrite(script.KillAfter, script.KillBefore)},
		{Name: "ambiguous", Faults: atEveryWrite(script.LoseAnswer, script.TimeOut, script.Fail500, script.Conflict, script.TooMany, script.Reject, script.Stall)},
		{Name: "stale", Faults: drawn(perWrite, 1, stale)},
		{Name: "leaders", Standby: true, Faults: leaders},
		{Name: "partition", Faults: drawn(perWrite, 1, parted)},
		{Name: "mixed", Faults: drawn(perWrite, most, anything)},
	}
}

const (
	// perWrite is how many runs families that draw make for each write of the calm run.
	perWrite = 2
	// most is how many faults a run has at most.
	most = 3
)

// atEveryWrite has one run for every write of the calm run and every action.
func atEveryWrite(actions ...script.Action) func(*Result, *rand.Rand) [][]script.Fault {
	return func(calm *Result, _ *rand.Rand) [][]script.Fault {
		var all [][]script.Fault
		for _, write := range calm.Records {
			for _, do := range actions {
				all = append(all, []script.Fault{at(write, do)})
			}
		}
		return all
	}
}

// takeover is how long a leader stands still: its lease ends, another one takes it and acts.
const takeover = 8 * time.Second

// leaders has one run for every write of a manager that can have replicas: the leader stands still when it sends it.
func leaders(calm *Result, _ *rand.Rand) [][]script.Fault {
	var all [][]script.Fault
	for _, write := range calm.Records {
		if write.Manager == inMemory || write.Resource == "leases" {
			continue
		}
		f := at(write, script.Suspend)
		f.For = takeover
		all = append(all, []script.Fault{f})
	}
	return all
}

func at(write script.Record, do script.Action) script.Fault {
	return script.Fault{When: write.Kind(), Nth: write.Nth, Do: do}
}

// drawn has runs with up to so many faults, each at a write of the calm run.
func drawn(perWrite, faults int, draw func(script.Record, *rand.Rand) script.Fault) func(*Result, *rand.Rand) [][]script.Fault {
	return func(calm *Result, random *rand.Rand) [][]script.Fault {
		var all [][]script.Fault
		for range perWrite * len(calm.Records) {
			var one []script.Fault
			for range 1 + random.IntN(faults) {
				one = append(one, draw(calm.Records[random.IntN(len(calm.Records))], random))
			}
			all = append(all, one)
		}
		return all
	}
}

// stale is a view that gets old at a write: of the manager that writes, or of another one.
func stale(write script.Record, random *rand.Rand) script.Fault {
	f := at(write, pick(random, script.Freeze, script.Touch, script.Delay, script.Cut, script.Gone, script.Travel, script.TravelRestart))
	f.On = pick(random, cached(write.Manager)...)
	if f.Do != script.TravelRestart && random.IntN(2) == 0 {
		f.On = pick(random, cached(pick(random, core, bootstrap, controlPlane, inMemory))...)
	}
	if f.Do == script.Touch || random.IntN(3) == 0 {
		f.On.Resource = "machines" // What most is decided by.
	}
	f.For = time.Duration(1+random.IntN(4)) * time.Second
	if f.Do == script.Freeze {
		f.After = random.IntN(3)
	}
	return f
}

// parted is a workload cluster that cannot be reached for a while, or its etcd alone.
func parted(write script.Record, random *rand.Rand) script.Fault {
	f := at(write, pick(random, script.Unreachable, script.Blind, script.Hang))
	f.For = time.Duration(2+random.IntN(8)) * time.Second
	f.On = request.Kind{Workload: true, Manager: pick(random, "", core, bootstrap, controlPlane)}
	if random.IntN(3) == 0 {
		f.On = request.Kind{Workload: true, Manager: controlPlane, Verb: "connect"}
	}
	return f
}

// anything is any fault.
func anything(write script.Record, random *rand.Rand) script.Fault {
	switch random.IntN(3) {
	case 0:
		return at(write, pick(random, script.KillAfter, script.KillBefore))
	case 1:
		return at(write, pick(random, script.LoseAnswer, script.Fail500, script.Conflict, script.TooMany, script.Reject))
	}
	return stale(write, random)
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// The managers.
const (
	core         = "cluster-api-controller"
	bootstrap    = "kubeadm-bootstrap-controller"
	controlPlane = "kubeadm-control-plane-controller"
	inMemory     = "capim-manager"
)

// cached are the streams of events that a manager decides by.
func cached(manager string) []request.Kind {
	resources := map[string][]string{
		core: {
			"clusters", "machines", "machinesets", "machinedeployments", "kubeadmcontrolplanes", "kubeadmconfigs", "inmemorymachines",
			"inmemoryclusters", "inmemorymachinetemplates", "secrets", "",
		},
		bootstrap:    {"kubeadmconfigs", "machines", "clusters", "secrets", ""},
		controlPlane: {"kubeadmcontrolplanes", "machines", "clusters", "kubeadmconfigs", "inmemorymachines", "secrets", ""},
		inMemory:     {"inmemoryclusters", "inmemorymachines", "machines", "clusters", ""},
	}
	var kinds []request.Kind
	for _, resource := range resources[manager] {
		kinds = append(kinds, request.Kind{Manager: manager, Resource: resource})
	}
	return kinds
}
