package check

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// An object is not reconciled if its last reconcile failed, as controller-runtime logs it.
func TestFailures(t *testing.T) {
	t.Parallel()
	o := newObserver()
	base := o.logger(funcr.New(func(string, string) {}, funcr.Options{})).WithName("manager").WithValues("controller", "machine")
	first, second := base.WithValues("namespace", "ns", "name", "a"), base.WithValues("namespace", "ns", "name", "b")
	first.Error(errors.New("conflict"), "Reconciler error")
	second.Error(errors.New("no answer"), "Reconciler error")
	second.Error(errors.New("still no answer"), "Reconciler error")
	first.Error(errors.New("x"), "Another message")
	first.V(outcomes).Info("Reconcile successful")
	want := []Failure{{Controller: "machine", Namespace: "ns", Name: "b", Error: "still no answer"}}
	if diff := cmp.Diff(want, o.failures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	second.V(outcomes).Info("Reconcile done, requeueing after 5s")
	if diff := cmp.Diff([]Failure{}, o.failures()); diff != "" {
		t.Errorf("after its next reconcile (-want +got):\n%s", diff)
	}
}
