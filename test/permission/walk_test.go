package permission

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// walk creates, scales, remediates, upgrades, rotates, pauses and deletes a Cluster of a class.
func (w *world) walk() {
	w.t.Helper()
	w.createClass(func(o *unstructured.Unstructured) bool {
		if o.GetKind() == "KubeadmConfigTemplate" {
			readUserFile(w.t, o)
		}
		return true
	})
	deleteResourceSet := w.resourceSets()
	w.extensionConfig()
	size := scenario.Size{ControlPlanes: 1, Workers: 2}
	w.do("create", scenario.Create(size))
	w.waitFor("create", scenario.Ready(size))
	w.connected = true
	w.migrate()

	size = scenario.Size{ControlPlanes: 3, Workers: 3}
	w.do("scale up", scenario.Resize(size))
	w.waitFor("scale up", scenario.Ready(size))
	w.do("health checks", scenario.CheckHealth)
	for _, controlPlane := range []bool{true, false} {
		before := w.machines()
		w.do(fmt.Sprintf("remediation (control plane: %t)", controlPlane), scenario.LosePower(controlPlane, 1))
		w.waitFor("remediation", both(changed(before), scenario.Ready(size)))
	}
	w.do("label", label("shelf", "top"))
	w.waitFor("label", labeled("shelf", "top"))
	w.do("upgrade", scenario.Upgrade)
	w.waitFor("upgrade", both(scenario.Upgraded, scenario.Ready(size)))
	w.do("rotate workers", scenario.RotateWorkers)
	w.waitFor("rotate workers", both(scenario.Rotated("MachineDeployment"), scenario.Ready(size)))
	w.do("rotate control plane", scenario.RotateControlPlane)
	w.waitFor("rotate control plane", both(scenario.Rotated("KubeadmControlPlane"), scenario.Ready(size)))

	w.checkMetrics()
	small := scenario.Size{ControlPlanes: 1, Workers: 1}
	w.do("pause", pause(true))
	w.do("scale down", scenario.Resize(small))
	w.do("resume", pause(false))
	w.waitFor("scale down", scenario.Ready(small))
	w.do("remove workers", editWorkers(func([]any) []any { return []any{} }))
	w.waitFor("remove workers", noWorkers)
	w.do("add a pool", scenario.SetPool(2))
	w.waitFor("add a pool", scenario.PoolReady(2))
	w.do("scale the pool down", scenario.SetPool(1))
	w.waitFor("scale the pool down", scenario.PoolReady(1))
	deleteResourceSet()
	w.do("delete", scenario.Delete)
	w.waitFor("delete", scenario.Absent)
}

// createClass creates the ClusterClass, and waits until it is reconciled; see createObjects.
func (w *world) createClass(prepare func(*unstructured.Unstructured) bool) {
	w.t.Helper()
	w.createObjects(prepare)
	w.waitFor("the class", scenario.ClassReady)
}

// createObjects creates the ClusterClass and its templates, when webhooks are available. prepare changes them, and reports whether one is
// created.
func (w *world) createObjects(prepare func(*unstructured.Unstructured) bool) {
	w.t.Helper()
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(w.namespace)
	if err := w.Client.Create(w.t.Context(), namespace); err != nil {
		w.t.Fatal(err)
	}
	objects, err := scenario.Class()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.Client.Create(w.t.Context(), userFile(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if !prepare(o) {
			continue
		}
		w.eventually("creating "+o.GetKind(), func(ctx context.Context) error { return w.Client.Create(ctx, o.DeepCopy()) })
	}
}

// userFile returns a Secret with a file of workers, which the bootstrap provider reads live, as it does the control plane for the template.
func userFile(namespace string) *corev1.Secret {
	secret := &corev1.Secret{StringData: map[string]string{"motd": "Welcome to {{ .controlPlane.version }}"}}
	secret.Namespace, secret.Name = namespace, "motd"
	return secret
}

// readUserFile has workers with the content of userFile in a file.
func readUserFile(t *testing.T, template *unstructured.Unstructured) {
	t.Helper()
	file := map[string]any{
		"path": "/etc/motd", "contentFormat": "Template",
		"contentFrom": map[string]any{"secret": map[string]any{"name": "motd", "key": "motd"}},
	}
	if err := unstructured.SetNestedSlice(template.Object, []any{file}, "spec", "template", "spec", "files"); err != nil {
		t.Fatal(err)
	}
}

// pause pauses or resumes the Cluster.
func pause(paused bool) scenario.Change {
	return func(ctx context.Context, t scenario.Target) error {
		text := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
		return t.Client.Patch(ctx, cluster(t.Namespace), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
}

// label labels the control plane's Machines and their objects in place.
func label(key, value string) scenario.Change {
	return func(ctx context.Context, t scenario.Target) error {
		text := fmt.Sprintf(`{"spec":{"topology":{"controlPlane":{"metadata":{"labels":{%q:%q}}}}}}`, key, value)
		return t.Client.Patch(ctx, cluster(t.Namespace), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
}

// labeled is true when the infrastructure of all control plane Machines has a label.
func labeled(key, value string) scenario.Condition {
	return func(now history.State) error {
		controlPlane, _ := scenario.Machines(now)
		for _, m := range controlPlane {
			o := now[history.Key{Kind: "InMemoryMachine", Name: m.GetName()}]
			if o == nil || o.GetLabels()[key] != value {
				return fmt.Errorf("the infrastructure of Machine %s is not labeled", m.GetName())
			}
		}
		return nil
	}
}

func editWorkers(edit func([]any) []any) scenario.Change {
	return func(ctx context.Context, t scenario.Target) error {
		c := cluster(t.Namespace)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		path := []string{"spec", "topology", "workers", "machineDeployments"}
		deployments, _, err := unstructured.NestedSlice(c.Object, path...)
		if err := errors.Join(err, unstructured.SetNestedSlice(c.Object, edit(deployments), path...)); err != nil {
			return err
		}
		return t.Client.Update(ctx, c)
	}
}

func cluster(namespace string) *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta1")
	c.SetKind("Cluster")
	c.SetNamespace(namespace)
	c.SetName(scenario.ClusterName)
	return c
}

// machines returns the UIDs of the existing Machines.
func (w *world) machines() map[string]bool {
	now, _ := w.recorder.Now(w.namespace)
	found := map[string]bool{}
	for _, m := range now.Of("Machine") {
		found[string(m.GetUID())] = true
	}
	return found
}

// changed is true when one of these Machines no longer exists.
func changed(machines map[string]bool) scenario.Condition {
	return func(now history.State) error {
		left := 0
		for _, m := range now.Of("Machine") {
			if machines[string(m.GetUID())] {
				left++
			}
		}
		if left == len(machines) {
			return errors.New("no Machine has been replaced")
		}
		return nil
	}
}

func both(conditions ...scenario.Condition) scenario.Condition {
	return func(now history.State) error {
		for _, c := range conditions {
			if err := c(now); err != nil {
				return err
			}
		}
		return nil
	}
}

func noWorkers(now history.State) error {
	for _, kind := range []string{"MachineDeployment", "MachineSet"} {
		if n := len(now.Of(kind)); n > 0 {
			return fmt.Errorf("%d objects of kind %s still exist", n, kind)
		}
	}
	return nil
}
