package extensionconfig

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestReports(t *testing.T) {
	w := newWorld(t, config(serving(t, discovery())))
	testenv.Must(t, w.reconcile())
	if c := report.Get(w.config(), "Discovered"); c == nil || c.Reason != "Discovered" || !report.IsFalse(w.config(), "Paused") {
		t.Errorf("after the discovery: %v", w.config().GetConditions())
	}
	w = newWorld(t, config(serving(t, discovery()), injected("ns/missing")))
	testenv.Must(t, w.reconcile())
	c := report.Get(w.config(), "Discovered")
	if c == nil || c.Reason != "NotDiscovered" || c.Message == "" || report.IsTrue(w.config(), "Discovered") {
		t.Errorf("without a CA: %v", c)
	}
}
