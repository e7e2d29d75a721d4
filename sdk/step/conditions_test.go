package step

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestKindWithoutConditions: its steps run, and change it; their conditions are dropped.
func TestKindWithoutConditions(t *testing.T) {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m"}}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(m).Build()
	recorder := record.NewFakeRecorder(1)
	declared := Controller[*corev1.ConfigMap, *corev1.ConfigMap]{
		Name: "configmap", New: func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, Scope: Self[*corev1.ConfigMap],
		Steps: []Step[*corev1.ConfigMap]{Do("label", func(ctx context.Context, m *corev1.ConfigMap) (Result, error) {
			metav1.SetMetaDataLabel(&m.ObjectMeta, "a", "b")
			Event(ctx, "Labeled", "It has a label")
			return Wait("more"), nil
		}).Sets(clusterv1.ReadyV1Beta1Condition)},
		Conditions: condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.BootstrapReadyV1Beta1Condition}},
		Progress:   &Progress{},
	}
	runner := declared.Runner(Clients{Client: c, Live: c, Recorder: recorder, Clock: testclock.NewFakePassiveClock(now)})
	if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Labels["a"] != "b" || len(recorder.Events) != 1 {
		t.Errorf("labels %v, %d events, error %v", m.Labels, len(recorder.Events), err)
	}
}
