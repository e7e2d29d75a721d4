package host

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// member is what decides about an instance of a Deployment.
type member struct {
	hash     string
	ready    bool
	stopping bool
	// needed is an orphan that serves what the wanted one does not serve yet.
	needed bool
}

// changes are what to do with the instances of a Deployment.
type changes struct {
	// stop are the indexes of instances to stop.
	stop []int
	// start is whether to start an instance of the wanted template.
	start bool
}

// planRollout decides like a Deployment controller, for one replica. members have not ended, and are ordered from the oldest to
// the newest. wanted is the hash of the template, and runnable whether this process can run it.
//
// If the strategy permits a surge, the instance that serves is kept until the wanted one is ready, at most two run at a time, and
// none is stopped that is needed, or for a template that cannot run. Otherwise, the wanted one starts after all others have ended.
func planRollout(members []member, wanted string, runnable, surge bool) changes {
	current := newest(members, func(m member) bool { return m.hash == wanted })
	keep := -1
	if surge && (current < 0 || !members[current].ready) {
		others := func(m member) bool { return m.hash != wanted }
		if keep = newest(members, func(m member) bool { return others(m) && m.ready }); keep < 0 {
			keep = newest(members, others)
		}
	}
	var c changes
	for i, m := range members {
		if i != current && i != keep && !m.stopping && !(surge && m.needed) {
			c.stop = append(c.stop, i)
		}
	}
	room := 0
	if surge {
		room = 1
	}
	// An instance of the same template that is still stopping has the same Pod name.
	stale := slices.ContainsFunc(members, func(m member) bool { return m.hash == wanted && m.stopping })
	c.start = runnable && current < 0 && !stale && len(members) <= room
	return c
}

// newest returns the index of the newest matching member that is not stopping, or -1.
func newest(members []member, matches func(member) bool) int {
	for i, m := range slices.Backward(members) {
		if !m.stopping && matches(m) {
			return i
		}
	}
	return -1
}

// surges reports whether the strategy of a Deployment permits a second instance during a rollout.
func surges(d *appsv1.Deployment) bool {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxSurge == nil {
		return true // the default is 25 %, rounded up
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(ptr.Deref(d.Spec.Replicas, 1)), true)
	return err != nil || surge > 0 // API servers validate the value
}
