package campaign

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

// Family is a kind of faults. It derives the runs of a scenario from its baseline run.
type Family struct {
	// Name selects it on the command line.
	Name string
	// Standby is set if managers need standby replicas.
	Standby bool
	// For reports whether it is for a scenario. Nil: it is for all.
	For func(scenario.Scenario) bool
	// Faults returns the faults of each run, which are injected at writes of the baseline run. Random choices depend on seed only.
	Faults func(writes []script.Record, seed uint64) [][]script.Fault
}

// Families returns all families, the most valuable first.
func Families() []Family {
	return []Family{
		{Name: "kill", Faults: atEveryWrite(script.KillAfter, script.KillBefore)},
		{
			Name: "ambiguous",
			Faults: atEveryWrite(script.LoseAnswer, script.TimeOut, script.Fail500, script.Conflict, script.TooMany, script.Refuse,
				script.Reject, script.Stall),
		},
		{Name: "stale", Faults: drawn(perWrite, 1, stale)},
		{Name: "leaders", Standby: true, Faults: leaders},
		{Name: "partition", Faults: drawn(perWrite, 1, partitioned)},
		{Name: "mixed", Faults: drawn(perWrite, maxFaults, mixed)},
		{Name: "kills", For: manySteps, Faults: killAgain},
	}
}

const (
	// perWrite is the number of runs per write of the baseline run in families with random faults.
	perWrite = 2
	// maxFaults is the maximum number of faults in a run.
	maxFaults = 3
)

// atEveryWrite returns one run for every write of the baseline run and every action.
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

// manySteps reports whether a scenario is one of the operator or of the fleet provider. Their operations have many steps, of which each
// continues what the one before has left.
func manySteps(s scenario.Scenario) bool { return s.Operator || s.Backups }

// killStride is the distance of the writes after which killAgain kills a manager.
const killStride = 8

// killAgain returns runs in which a manager is killed again and again. Together, they kill it after each write of the baseline run.
func killAgain(writes []script.Record, _ uint64) [][]script.Fault {
	all := make([][]script.Fault, min(killStride, len(writes)))
	for i, write := range writes {
		all[i%killStride] = append(all[i%killStride], at(write, script.KillAfter))
	}
	return all
}

// takeover is how long a leader is suspended: long enough for another replica to acquire the lease and to act.
const takeover = 8 * time.Second

// changeTakeover is the same for the Lease that the operator holds while it changes a provider.
const changeTakeover = 20 * time.Second

// leases is how many writes of each manager's lease get a fault. There is no end of renewals.
const leases = 3

// leaders returns one run for every write of a manager that supports replicas: the leader is suspended when it sends the
// write. There are also runs that kill it when it acquires or renews its lease.
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
		if write.Manager == operator {
			f.For = changeTakeover
			all = append(all, []script.Fault{f})
		}
	}
	return all
}

func at(write script.Record, do script.Action) script.Fault {
	return script.Fault{When: write.Kind(), Nth: write.Nth, Do: do}
}

// drawn returns runs with at most this many faults, each at a write of the baseline run. The first fault of a run depends
// only on its write and the seed, not on the other writes.
func drawn(perWrite, faults int, draw func(script.Record, *rand.Rand) script.Fault) func([]script.Record, uint64) [][]script.Fault {
	return func(writes []script.Record, seed uint64) [][]script.Fault {
		var all [][]script.Fault
		for _, write := range writes {
			random := rand.New(rand.NewPCG(seed, digest(at(write, "").String()))) //nolint:gosec // Runs must be repeatable.
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

// digest returns a hash of a text.
func digest(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // It never fails.
	return h.Sum64()
}

// longShare is the inverse of the share of stale caches that are stale for a minute.
const longShare = 12

// stale returns a fault that makes a cache stale at a write: a cache of the manager that writes, or of another one.
func stale(write script.Record, random *rand.Rand) script.Fault {
	if write.Manager == ipam || write.Manager == operator { // It is alone, and does not read Machines.
		f := at(write, pick(random, script.Freeze, script.Delay, script.Cut, script.Gone, script.Travel, script.TravelRestart))
		f.On = pick(random, cached(write.Manager)...)
		return lasting(f, random)
	}
	f := at(write,
		pick(random, script.Freeze, script.Touch, script.Sicken, script.Delay, script.Cut, script.Gone, script.Travel, script.TravelRestart))
	f.On = pick(random, cached(write.Manager)...)
	if f.Do != script.TravelRestart && random.IntN(2) == 0 {
		f.On = pick(random, cached(pick(random, managers()...))...)
	}
	if f.Do == script.Touch || f.Do == script.Sicken || random.IntN(3) == 0 {
		f.On.Resource = "machines" // Most decisions depend on them.
	}
	return lasting(f, random)
}

// lasting sets how long a cache is stale.
func lasting(f script.Fault, random *rand.Rand) script.Fault {
	f.For = time.Duration(1+random.IntN(4)) * time.Second
	if random.IntN(longShare) == 0 {
		f.For = time.Minute
	}
	if f.Do == script.Freeze {
		f.After = random.IntN(3)
	}
	return f
}

// partitioned returns a fault that makes something unreachable for a while: a workload cluster, only its etcd, the
// management cluster's API server for one manager, or a manager's webhooks for the API server. A workload cluster may also
// send endless responses.
func partitioned(write script.Record, random *rand.Rand) script.Fault {
	f := at(write, pick(random, script.Unreachable, script.Blind, script.Hang))
	f.For = time.Duration(2+random.IntN(8)) * time.Second
	switch write.Manager {
	case operator:
		f.For *= time.Duration(1 + random.IntN(2)) // A change is given up when its Lease cannot be renewed for 10 seconds.
		f.On = pick(random, script.Kind{Manager: operator}, script.Kind{Manager: operator},
			script.Kind{Manager: operator, Verb: world.Admission})
		return f
	case ipam: // There is no workload cluster.
		f.On = pick(random, script.Kind{Manager: ipam}, script.Kind{Manager: ipam, Verb: world.Admission},
			script.Kind{Manager: core, Verb: world.Admission})
		return f
	}
	switch random.IntN(6) {
	case 0:
		f.On = script.Kind{Workload: true, Manager: controlPlane, Verb: "connect"}
	case 1:
		f.On = script.Kind{Manager: pick(random, managers()...)}
	case 2:
		f.On = script.Kind{Manager: pick(random, managers()...), Verb: world.Admission}
	case 3:
		f.Do = script.Flood
		fallthrough
	default:
		f.On = script.Kind{Workload: true, Manager: pick(random, "", core, bootstrap, controlPlane)}
	}
	return f
}

// mixed returns a fault of any kind except partitions and leader changes.
func mixed(write script.Record, random *rand.Rand) script.Fault {
	switch random.IntN(3) {
	case 0:
		return at(write, pick(random, script.KillAfter, script.KillBefore))
	case 1:
		return at(write,
			pick(random, script.LoseAnswer, script.Fail500, script.Conflict, script.TooMany, script.Refuse, script.Reject, script.BlackHole))
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
	ipam         = "capi-ipam-in-cluster-controller"
	operator     = "cluster-api-operator"
	fleet        = "capi-fleet-controller"
)

func managers() []string { return []string{core, bootstrap, controlPlane, inMemory} }

// cached returns the kinds that a manager caches and decides on.
func cached(manager string) []script.Kind {
	resources := map[string][]string{
		core: {
			"clusters", "machines", "machinesets", "machinedeployments", "kubeadmcontrolplanes", "kubeadmconfigs", "inmemorymachines",
			"inmemoryclusters", "inmemorymachinetemplates", "machinepools", "inmemorymachinepools", "secrets", "",
		},
		bootstrap:    {"kubeadmconfigs", "machines", "machinepools", "clusters", "secrets", ""},
		controlPlane: {"kubeadmcontrolplanes", "machines", "clusters", "kubeadmconfigs", "inmemorymachines", "secrets", ""},
		operator:     {"coreproviders", "infrastructureproviders", "deployments", ""},
		fleet: {
			"etcdbackups", "backupstores", "clusters", "controlplanerestores", "controlplanerecoveries", "certificateauthorityrotations", "",
		},
		ipam:     {"inclusterippools", "ipaddressclaims", "ipaddresses", ""},
		inMemory: {"inmemoryclusters", "inmemorymachines", "machines", "machinepools", "inmemorymachinepools", "clusters", ""},
	}
	var kinds []script.Kind
	for _, resource := range resources[manager] {
		kinds = append(kinds, script.Kind{Manager: manager, Resource: resource})
	}
	return kinds
}
