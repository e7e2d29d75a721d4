package step

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

// settleTime is how long a status may differ from what is known when the difference is only progress. What takes
// longer than this is told; what is overtaken by the next step of a burst is not.
const settleTime = 500 * time.Millisecond

// Progress declares which changes of a kind's status tell only how far something is on its way: nobody acts on
// them, so a Runner gives them settleTime to be overtaken before it writes them. Conditions that are not True and
// stay so are progress always, with another reason or without one, unless they are of severity Error.
//
// Everything else is written at once: what others wait for, what gets worse, and all that a failed reconcile or
// one of a deleted object has to tell. Metadata and spec never wait.
type Progress struct {
	// Fields of the status that are progress.
	Fields []string
	// Conditions that are progress even when they become True. Ready follows those that feed it.
	Conditions []clusterv1.ConditionType
	// OfOthers says that the kind repeats the progress of other objects. It is given twice the time, so that it repeats
	// theirs once, when that has settled, and not each on its own.
	OfOthers bool
}

// time is how long progress may wait.
func (p *Progress) time() time.Duration {
	if p.OfOthers {
		return 2 * settleTime
	}
	return settleTime
}

// covers reports whether everything that a status patch changes is progress.
func (p *Progress) covers(patch document, before, after clusterv1.Conditions) bool {
	for field := range patch.status() {
		if field != "conditions" && field != "observedGeneration" && !slices.Contains(p.Fields, field) {
			return false
		}
	}
	for _, t := range condition.Changed(before, after) {
		if !condition.OnItsWay(before, after, t, t == clusterv1.ReadyCondition || slices.Contains(p.Conditions, t)) {
			return false
		}
	}
	return true
}

// unsettled remembers what the status of objects has to tell and does not say yet. A reconcile builds on what earlier
// ones stated whether it was written or not, so waiting changes nothing but the time of the write.
type unsettled struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]unwritten
}

// unwritten is for one object since when it has something to tell, and the conditions as they were read and as they
// are to be.
type unwritten struct {
	uid        types.UID
	since      time.Time
	read, told clusterv1.Conditions
}

// recall states on an object that was just read what was stated before and not written.
func (u *unsettled) recall(obj Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o, ok := u.objects[client.ObjectKeyFromObject(obj)]; ok && o.uid == obj.GetUID() {
		obj.SetConditions(condition.Merge(o.read, o.told, obj.GetConditions()))
	}
}

// hold keeps what now has to be told, and says since when there is something.
func (u *unsettled) hold(read, now Object, at time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.objects == nil {
		u.objects = map[types.NamespacedName]unwritten{}
	}
	key := client.ObjectKeyFromObject(now)
	o, ok := u.objects[key]
	if !ok || o.uid != now.GetUID() {
		o = unwritten{uid: now.GetUID(), since: at}
	}
	o.read, o.told = slices.Clone(read.GetConditions()), slices.Clone(now.GetConditions())
	u.objects[key] = o
	return o.since
}

// settle forgets an object: its status says all there is, or it is gone.
func (u *unsettled) settle(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.objects, key)
}
