package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestContentsAreApplied: new contents of what a spec refers to are applied at once, like a change of the spec.
func TestContentsAreApplied(t *testing.T) {
	release := simpleConfigMap("x-system", "x", "v1.0.0")
	adds(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {value: "${VALUE:=none}"}}` + "\n")(release)
	manifests := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "m"}, Data: map[string]string{
		"manifests": "{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: x-system}, data: {value: a}}",
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "x-system", Name: "s"}, Data: map[string][]byte{"VALUE": []byte("a")}}
	w := newWorld(t, release, manifests, secret)
	w.create(simpleProvider)
	p := w.provider("InfrastructureProvider", "x-system", "x")
	w.change(p, `{secretName: s, additionalManifests: {name: m, namespace: elsewhere}}`)
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
	applied := func(name, want string) {
		t.Helper()
		p = w.reconcile(p)
		c := &corev1.ConfigMap{}
		testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "x-system", Name: name}, c))
		if c.Data["value"] != want {
			t.Errorf("ConfigMap %s has value %q, want %q", name, c.Data["value"], want)
		}
	}
	applied("c", "a")
	secret.Data["VALUE"] = []byte("b")
	testenv.Must(t, w.Update(t.Context(), secret))
	applied("c", "b")
	manifests.Data["manifests"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: x-system}, data: {value: b}}"
	testenv.Must(t, w.Update(t.Context(), manifests))
	applied("more", "b")
	adds(`{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, data: {value: "corrected"}}`)(release)
	testenv.Must(t, w.Update(t.Context(), release))
	applied("d", "corrected")

	// A mistake in the contents is reported, and not repeated for ever; corrected, it is applied at once.
	manifests.Data["manifests"] = "a: ["
	testenv.Must(t, w.Update(t.Context(), manifests))
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False", "spec.additionalManifests")
	manifests.Data["manifests"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: x-system}, data: {value: c}}"
	testenv.Must(t, w.Update(t.Context(), manifests))
	applied("more", "c")
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
}

// TestInputsAreWatchedWhileReferred: each once, until the spec no longer refers to it, or the object is gone.
func TestInputsAreWatchedWhileReferred(t *testing.T) {
	w := newWorld(t)
	w.create(simpleProvider)
	p := w.provider("InfrastructureProvider", "x-system", "x")
	var open []string
	ended := make(chan string)
	changes := map[string]func(){}
	i := newInputs(func(ctx context.Context, in source.Input, changed func()) (client.Reader, error) {
		name := fmt.Sprint(in.Kind, " ", in.Namespace, "/", in.Name, in.Selector)
		open, changes[name] = append(open, name), changed
		context.AfterFunc(ctx, func() { ended <- name })
		return w.ForController().Client, nil
	})
	if _, err := i.versions(t.Context(), p); err == nil {
		t.Error("inputs are watched before the controller has started")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	testenv.Must(t, i.start(t.Context(), queue))
	for _, spec := range []string{`{secretName: s}`, `{manager: {verbosity: 2}}`} {
		w.change(p, spec)
		for range 2 {
			_, err := i.versions(t.Context(), p)
			testenv.Must(t, err)
		}
	}
	if want := []string{"Secret x-system/s", "ConfigMap x-system/provider-components=x"}; !slices.Equal(open, want) {
		t.Errorf("watched %v, want %v", open, want)
	}
	changes["Secret x-system/s"]()
	if got, _ := queue.Get(); got.NamespacedName != client.ObjectKeyFromObject(p) {
		t.Errorf("reconciles %v", got)
	}
	w.change(p, `{secretName: other}`)
	_, err := i.versions(t.Context(), p)
	testenv.Must(t, err)
	if got := <-ended; got != "Secret x-system/s" {
		t.Errorf("no longer watched: %s", got)
	}
	i.forget(p)
	got := []string{<-ended, <-ended}
	slices.Sort(got)
	if want := []string{"ConfigMap x-system/provider-components=x", "Secret x-system/other"}; !slices.Equal(got, want) {
		t.Errorf("no longer watched: %v, want %v", got, want)
	}
}
