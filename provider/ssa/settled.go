package ssa

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// verdict is what makes a comparison: with all of it the same, so is the answer.
type verdict struct {
	schema  *kindSchema
	version string // the resourceVersion of live
	desired digest // with the options
}

// judge says whether it is known already that applying desired to live would change nothing, which is what most
// comparisons find: objects are compared whenever anything of their owner changes. A verdict to keep comes with it.
func (a *Applier) judge(s *kindSchema, live, desired *unstructured.Unstructured, opts []Option) (v verdict, settled bool, err error) {
	if live == nil || live.GetUID() == "" || live.GetResourceVersion() == "" {
		return verdict{}, false, nil
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	asked, err := digestOf([]any{desired.Object, o.leaveZero})
	if err != nil {
		return verdict{}, false, err
	}
	v = verdict{schema: s, version: live.GetResourceVersion(), desired: asked}
	known, ok := a.settled.Get(live.GetUID())
	return v, ok && known == v, nil
}

// settle keeps that applying would change nothing.
func (a *Applier) settle(live *unstructured.Unstructured, v verdict) {
	if v.schema != nil {
		a.settled.Add(live.GetUID(), v)
	}
}
