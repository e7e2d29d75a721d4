package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// stopped ends the Pods of a Deployment.
func (w *world) stopped(d *appsv1.Deployment) {
	w.t.Helper()
	d.Status.Replicas = 0
	testenv.Must(w.t, w.Status().Update(w.t.Context(), d))
}

// TestPauseTakesEffect also while the rest of the spec is rejected; the condition says that the provider is paused only when it is so.
func TestPauseTakesEffect(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	p := w.provider("InfrastructureProvider", "x-system", "x")
	w.change(p, `{deployment: {replicas: 3}}`)
	p = w.reconcile(p)
	w.change(p, `{version: v0.3.0, paused: true}`)
	w.stopping = true
	p = w.reconcile(p)
	w.reports(p, operatorv1.PreflightCheckCondition, "False UnsupportedProviderDowngradeReason")
	w.reports(p, operatorv1.ReadyCondition, "False Pausing: Waiting for Deployment ca-x-controller-manager to stop")
	d := w.deployment("x-system", "x")
	if *d.Spec.Replicas != 0 || d.Annotations[operatorv1.PausedReplicasAnnotation] != "3" {
		t.Errorf("the Deployment has %d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
	w.stopping = false
	w.stopped(d)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ReadyCondition, "False Paused: Waiting for spec.paused to be false")

	w.change(p, `{paused: false}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ReadyCondition, "False Paused: Waiting for Deployment ca-x-controller-manager to be resumed")
	w.change(p, `{version: v1.0.0}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ReadyCondition, "True")
	if d := w.deployment("x-system", "x"); *d.Spec.Replicas != 3 || d.Annotations[operatorv1.PausedReplicasAnnotation] != "" {
		t.Errorf("the resumed Deployment has %d replicas, annotations %v", *d.Spec.Replicas, d.Annotations)
	}
}

// TestContractWaitsForManagers: what implements another contract is not installed while managers of the former one run, although all are
// paused, in one commit with the new version.
func TestContractWaitsForManagers(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"x", "z"} {
		for _, version := range []string{"v0.6.0", "v1.0.0"} {
			release := simpleConfigMap("x-system", name, version)
			release.Name = name + "-" + version
			release.Labels[operatorv1.VersionLabel] = version
			if version == "v1.0.0" {
				release.Data["metadata"] = strings.Replace(release.Data["metadata"], "minor: 0, contract: v1beta1", "minor: 0, contract: v1beta2", 1)
			}
			testenv.Must(t, w.Create(t.Context(), release))
		}
		w.create(strings.NewReplacer("name: x,", "name: "+name+",", "uid: x", "uid: "+name, "provider-components: x", "provider-components: "+name,
			"v1.0.0", "v0.6.0").Replace(simpleProvider))
		w.reconcile(w.provider("InfrastructureProvider", "x-system", name))
	}
	core := w.provider("CoreProvider", "capi-system", "cluster-api")
	core.GetSpec().Paused, core.GetStatus().Contract = true, ptr.To("v1beta1")
	testenv.Must(t, w.Update(t.Context(), core.Object))
	x, y := w.provider("InfrastructureProvider", "x-system", "x"), w.provider("InfrastructureProvider", "x-system", "z")
	w.stopping = true
	for _, p := range []providerobject.Provider{x, y} {
		w.change(p, `{version: v1.0.0, paused: true}`)
	}
	x = w.reconcile(x)
	w.reports(x, operatorv1.PreflightCheckCondition, "False CAPIVersionIncompatibility: Waiting for Deployment ca-z-controller-manager of InfrastructureProvider x-system/z to stop: the contract changes")
	y = w.reconcile(y)
	w.reports(y, operatorv1.PreflightCheckCondition, "False CAPIVersionIncompatibility: Waiting for Deployment ca-x-controller-manager of InfrastructureProvider x-system/x to stop")

	w.stopping = false
	before := y.DeepCopyObject().(providerobject.Object)
	w.stopped(w.deployment("x-system", "z"))
	y = w.reconcile(y)
	update := event.UpdateEvent{ObjectOld: before, ObjectNew: y.Object}
	if !affectsOthers().Update(update) {
		t.Error("other providers do not notice that the managers have stopped")
	}
	x = w.reconcile(x)
	w.reports(x, operatorv1.PreflightCheckCondition, "True")
	if got := ptr.Deref(x.GetStatus().InstalledVersion, ""); got != "v1.0.0" {
		t.Errorf("installed version %s", got)
	}
}
