package permission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// handler returns a handler of a hook, as the hook Discovery answers.
func handler(name, hook string) map[string]any {
	return map[string]any{"name": name, "requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook}}
}

// extensionConfig registers a server of extensions whose CA is in a Secret, for namespaces with a label, and waits until it is discovered.
func (w *world) extensionConfig() {
	w.t.Helper()
	w.extended = true
	server := extensiontest.Serve(w.t, extensiontest.Options{}, extensiontest.Answers(map[string]any{
		"discovery": map[string]any{"status": "Success", "message": "", "handlers": []any{
			handler("create", "BeforeClusterCreate"), handler("can-update", "CanUpdateMachine"),
		}},
		"beforeclustercreate/create":  map[string]any{"status": "Success", "message": ""},
		"canupdatemachine/can-update": map[string]any{"status": "Success", "message": ""}, // It can change nothing.
	}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "extension-ca"}, Data: map[string][]byte{"ca.crt": server.CA}}
	if err := w.Client.Create(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clientConfig":      map[string]any{"url": server.URL},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.namespace}},
	}}}
	config.SetAPIVersion("runtime.cluster.x-k8s.io/v1alpha1")
	config.SetKind("ExtensionConfig")
	config.SetName("walk")
	config.SetAnnotations(map[string]string{"runtime.cluster.x-k8s.io/inject-ca-from-secret": w.namespace + "/extension-ca"})
	w.eventually("creating an ExtensionConfig", func(ctx context.Context) error { return w.Client.Create(ctx, config.DeepCopy()) })
	w.eventually("discovering extensions", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(config.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Discovered" && c["status"] == "True" {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("the conditions are %v", conditions))
	})
}
