// Package stage plans how the objects of one version of a provider are replaced by those of another: a pure function from
// what exists and what is wanted to ordered stages.
//
// The order lets both versions work until only the new one is needed: definitions first; then what the new version needs in
// addition; then its Pods beside the old ones; and only when these are available what would cut the old ones off.
package stage

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
)

// Action is what is done with an object.
type Action string

const (
	// Extend creates the object, or adds to the existing one what the new version needs.
	Extend Action = "extend"
	// Write creates the object, or replaces the existing one.
	Write Action = "write"
	// Recreate deletes the existing object, whose change the API server does not allow, and creates it again. Pods of a Deployment
	// keep running.
	Recreate Action = "recreate"
	// Roll creates a Deployment, or replaces it such that old Pods run until new ones are available.
	Roll Action = "roll"
	// Await waits until a Deployment is available in its new version.
	Await Action = "await"
	// Delete deletes an object that the new version does not have.
	Delete Action = "delete"
)

// Name is the name of a stage.
type Name string

// Stages, in order.
const (
	// Definitions are CustomResourceDefinitions.
	Definitions Name = "definitions"
	// Additions is what the new version needs in addition before it can start.
	Additions Name = "additions"
	// Controllers start, beside those that run.
	Controllers Name = "controllers"
	// Cutover gives all objects their new form.
	Cutover Name = "cut-over"
	// Removal deletes what the new version does not have.
	Removal Name = "removal"
)

// Stage is a list of steps that start when those of the previous stage are done.
type Stage struct {
	Name Name
	// Steps are in order. Neighbors with the same action and kind can run concurrently.
	Steps []Step
}

// Step is an action with an object. For Delete and Await, the object only identifies it.
type Step struct {
	Action Action
	Object *unstructured.Unstructured
}

// Plan returns the stages that replace live objects by desired ones. Live objects that are not desired are deleted, except
// Namespaces and CustomResourceDefinitions, with which users would lose objects.
func Plan(desired, live []unstructured.Unstructured) []Stage {
	p := planner{live: map[manifest.Key]*unstructured.Unstructured{}, wanted: map[manifest.Key]bool{}}
	for i := range live {
		p.live[manifest.KeyOf(&live[i])] = &live[i]
	}
	ordered := slices.Clone(desired)
	slices.SortStableFunc(ordered, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(manifest.Rank(a.GetKind()), manifest.Rank(b.GetKind())), cmp.Compare(a.GetKind(), b.GetKind()))
	})
	for i := range ordered {
		p.wanted[manifest.KeyOf(&ordered[i])] = true
		p.add(&ordered[i])
	}
	for i := range ordered {
		if ordered[i].GetKind() == "Deployment" {
			p.step(&p.controllers, Await, &ordered[i])
		}
	}
	p.remove(live)
	return []Stage{
		{Definitions, p.definitions}, {Additions, p.additions}, {Controllers, p.controllers}, {Cutover, p.cutover}, {Removal, p.removal},
	}
}

type planner struct {
	live   map[manifest.Key]*unstructured.Unstructured
	wanted map[manifest.Key]bool

	definitions, additions, controllers, cutover, removal []Step
}

func (p *planner) step(list *[]Step, a Action, o *unstructured.Unstructured) {
	*list = append(*list, Step{a, o})
}

// add plans a desired object.
func (p *planner) add(o *unstructured.Unstructured) {
	live := p.live[manifest.KeyOf(o)]
	recreate := live != nil && merge.MustRecreate(live, o)
	switch kind := o.GetKind(); {
	case kind == manifest.KindCRD:
		p.step(&p.definitions, Write, o)
	case kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration":
		p.step(&p.cutover, Write, o)
	case kind == "Deployment" || kind == "DaemonSet" || kind == "StatefulSet":
		if recreate {
			p.step(&p.controllers, Recreate, o)
		} else {
			p.step(&p.controllers, Roll, o)
		}
		p.step(&p.cutover, Write, o)
	case recreate:
		p.step(&p.additions, Recreate, o)
	default:
		p.step(&p.additions, Extend, o)
		p.step(&p.cutover, Write, o)
	}
}

// remove plans the deletion of what is not desired: webhook configurations first, so that none calls a Service that is gone.
func (p *planner) remove(live []unstructured.Unstructured) {
	for i := range live {
		o := &live[i]
		if kind := o.GetKind(); !p.wanted[manifest.KeyOf(o)] && kind != manifest.KindCRD && kind != "Namespace" {
			p.step(&p.removal, Delete, manifest.Identity(o))
		}
	}
	slices.SortStableFunc(p.removal, func(a, b Step) int {
		x, y := a.Object.GetKind(), b.Object.GetKind()
		return cmp.Or(cmp.Compare(manifest.Rank(y), manifest.Rank(x)), cmp.Compare(x, y))
	})
}
