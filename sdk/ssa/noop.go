package ssa

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// verdict identifies a comparison: the same verdict has the same result.
type verdict struct {
	schema  *kindSchema
	version string // the resourceVersion of live
	desired digest // with the options
}

// judge reports whether it is known that applying desired to live would change nothing, the result of most
// comparisons: objects are compared whenever anything of their owner changes. It also returns the verdict to remember.
func (a *Applier) judge(s *kindSchema, live, desired *unstructured.Unstructured, opts []Option) (v verdict, noop bool, err error) {
	if live == nil || live.GetUID() == "" || live.GetResourceVersion() == "" {
		return verdict{}, false, nil
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	asked, err := digestOf([]any{desired.Object, o.leaveZero, o.references})
	if err != nil {
		return verdict{}, false, err
	}
	v = verdict{schema: s, version: live.GetResourceVersion(), desired: asked}
	known, ok := a.noops.Get(live.GetUID())
	return v, ok && known == v, nil
}

// rememberNoop remembers that applying would change nothing.
func (a *Applier) rememberNoop(live *unstructured.Unstructured, v verdict) {
	if v.schema != nil {
		a.noops.Add(live.GetUID(), v)
	}
}
