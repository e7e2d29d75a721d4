package machinepool

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDeleteMachines(t *testing.T) {
	gone := func(w *stale) { testenv.Must(w, w.Delete(w.Context(), w.infra("w-1"))) }
	marked := condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, "")
	mark := func(w *stale) {
		m := w.machine("w-1")
		condition.Set(m, marked)
		condition.Stamp(m, nil, now)
		testenv.Must(w, w.Status().Update(w.Context(), m))
	}
	tests := map[string]struct {
		reason string
		before func(w *stale)
		// freeze is whether the cache misses what happens then.
		freeze bool
		after  func(w *stale)
		kept   bool
		// remediated is the condition of the Machine afterwards.
		remediated string
	}{
		"Kept":   {reason: "the infrastructure machine exists", kept: true},
		"Gone":   {reason: "it no longer exists", before: gone},
		"Hidden": {reason: "it is only missing in the cache", before: func(w *stale) { w.api.Cache.Hide(w.infra("w-1")) }, kept: true},
		"Unlabeled": {reason: "it lost its label", kept: true, before: func(w *stale) {
			change(w, w.infra("w-1"), func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}},
		"Moved": {reason: "the Cluster is being moved away", before: gone, freeze: true, kept: true,
			after: func(w *stale) { change(w, w.build.Cluster(), object.Paused) }},
		"Marked": {reason: "it is marked for remediation", before: mark, remediated: "False"},
		"Recovered": {reason: "it recovered, and the cache is stale", before: mark, freeze: true, kept: true, remediated: "True", after: func(w *stale) {
			m := w.machine("w-1")
			condition.Set(m, condition.True(clusterv1.MachineOwnerRemediatedV1Beta1Condition))
			condition.Stamp(m, nil, now)
			testenv.Must(w, w.Status().Update(w.Context(), m))
		}},
		"Remediated": {reason: "once it is being deleted, it counts as remediated", remediated: "True", before: func(w *stale) {
			mark(w)
			testenv.Must(w, w.Delete(w.Context(), w.machine("w-1")))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			w.infraMachine("w-1")
			w.mustReconcile()
			w.machine("w-1")
			if tc.before != nil {
				tc.before(w)
			}
			if tc.freeze {
				w.freeze()
			}
			if tc.after != nil {
				tc.after(w)
			}
			w.mustReconcile()
			if kept := len(w.names()) == 1; kept != tc.kept {
				t.Errorf("%s: kept = %t, want %t", tc.reason, kept, tc.kept)
			}
			got := ""
			if c := condition.Get(w.machine("w-1"), clusterv1.MachineOwnerRemediatedV1Beta1Condition); c != nil {
				got = string(c.Status)
			}
			if got != tc.remediated {
				t.Errorf("%s: OwnerRemediated is %q, want %q", tc.reason, got, tc.remediated)
			}
		})
	}
}
