package topology

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkSteady reconciles a Cluster that is up to date.
func BenchmarkSteady(b *testing.B) {
	w := newWorld(b)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.reconciled(c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.runner.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			b.Fatal(err)
		}
	}
	if sent := w.requests.take(); len(sent) > 0 {
		b.Errorf("sent %v", sent)
	}
}
