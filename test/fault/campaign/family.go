package campaign

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

// Family is a kind of faults: which runs there are of a scenario whose calm run is known.
type Family struct {
	// Name is how it is asked for.
	Name string
	// Standby says that the managers need replicas.
	Standby bool
	// Faults returns the faults of each run, which happen at writes of the calm run. What it draws is decided by seed.
	Faults func(writes []script.Record, seed uint64) [][]script.Fault
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
func atEveryWrite(actions ...script.Action) func([]script.Record, uint64) [][]script.Fault {
	return func(writes []script.Record, _ uint64) [][]script.Fault {
		var all [][]script.Fault
		for _, write := range writes {
			for _, do := range actions {
				all = append(all, []script.Fault{at(write, do)})
			}
		}
		return all
	}
}

// takeover is how long a leader stands still: its lease ends, another one takes it and acts.
const takeover = 8 * time.Second

// leases is how many of a manager's writes of its lease are disturbed. It goes on renewing it.
const leases = 3

// leaders has one run for every write of a manager that can have replicas: the leader stands still when it sends it. It is
// killed, too, when it takes or renews its lease.
func leaders(writes []script.Record, _ uint64) [][]script.Fault {
	var all [][]script.Fault
	for _, write := range writes {
		if write.Manager == inMemory || write.Lease() && write.Nth > leases {
			continue
		}
		if write.Lease() {
			all = append(all, []script.Fault{at(write, script.KillBefore)}, []script.Fault{at(write, script.KillAfter)})
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
// The first is at a certain write and decided by that and the seed alone, whatever other writes there are.
func drawn(perWrite, faults int, draw func(script.Record, *rand.Rand) script.Fault) func([]script.Record, uint64) [][]script.Fault {
	return func(writes []script.Record, seed uint64) [][]script.Fault {
		var all [][]script.Fault
		for _, write := range writes {
			random := rand.New(rand.NewPCG(seed, digest(at(write, "").String()))) //nolint:gosec // Runs have to be repeatable.
			for range perWrite {
				one := []script.Fault{draw(write, random)}
				for range random.IntN(faults) {
					one = append(one, draw(pick(random, writes...), random))
				}
				all = append(all, one)
			}
		}
		return all
	}
}

// digest is a number for a text.
func digest(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // It never fails.
	return h.Sum64()
}

// long is which share of old views stay old for a minute.
const long = 12

// stale is a view that gets old at a write: of the manager that writes, or of another one.
func stale(write script.Record, random *rand.Rand) script.Fault {
	f := at(write, pick(random, script.Freeze, script.Touch, script.Sicken, script.Delay, script.Cut, script.Gone, script.Travel, script.TravelRestart))
	f.On = pick(random, cached(write.Manager)...)
	if f.Do != script.TravelRestart && random.IntN(2) == 0 {
		f.On = pick(random, cached(pick(random, managers()...))...)
	}
	if f.Do == script.Touch || f.Do == script.Sicken || random.IntN(3) == 0 {
		f.On.Resource = "machines" // What most is decided by.
	}
	f.For = time.Duration(1+random.IntN(4)) * time.Second
	if random.IntN(long) == 0 {
		f.For = time.Minute
	}
	if f.Do == script.Freeze {
		f.After = random.IntN(3)
	}
	return f
}

// parted is something that cannot be reached for a while: a workload cluster, its etcd alone, the API server of the
// management cluster by one manager, or a manager's webhooks by the API server. A workload cluster may also answer without end.
func parted(write script.Record, random *rand.Rand) script.Fault {
	f := at(write, pick(random, script.Unreachable, script.Blind, script.Hang))
	f.For = time.Duration(2+random.IntN(8)) * time.Second
	switch random.IntN(6) {
	case 0:
		f.On = request.Kind{Workload: true, Manager: controlPlane, Verb: "connect"}
	case 1:
		f.On = request.Kind{Manager: pick(random, managers()...)}
	case 2:
		f.On = request.Kind{Manager: pick(random, managers()...), Verb: world.Admission}
	case 3:
		f.Do = script.Flood
		fallthrough
	default:
		f.On = request.Kind{Workload: true, Manager: pick(random, "", core, bootstrap, controlPlane)}
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

func managers() []string { return []string{core, bootstrap, controlPlane, inMemory} }

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
