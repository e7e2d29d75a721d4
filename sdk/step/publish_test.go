package step

import (
	"context"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// TestPublish: what a step publishes is in the API server while it is at work; its end overwrites it without a conflict.
func TestPublish(t *testing.T) {
	const kind = "Ready"
	var w *world
	var during *clusterv1.Machine
	w = newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		m.Spec.ProviderID = "cloud://1"
		m.Status.Phase = "Provisioning"
		if err := Publish(ctx, report.False(kind, "Working", "half of it")); err != nil {
			return Done(), err
		}
		during = w.machine(t)
		m.Status.Phase = "Running"
		m.Labels = map[string]string{"a": "b"}
		report.Set(m, m.Generation, w.runner.Clock.Now(), report.True(kind, "Done", ""))
		return Done(), nil
	}, machine())
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	c := report.Get(during, kind)
	if during.Status.Phase != "Provisioning" || during.Spec.ProviderID == "" || c == nil || c.Message != "half of it" {
		t.Errorf("during the step: %+v", during)
	}
	after := w.machine(t)
	if after.Status.Phase != "Running" || after.Labels["a"] != "b" || !report.IsTrue(after, kind) {
		t.Errorf("after the reconcile: %+v", after)
	}
}
