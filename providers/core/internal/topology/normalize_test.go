package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// addPolicies adds admission policies that change applied objects: durations of machine templates and control planes, and a
// default in an atomic list.
func (w *world) addPolicies(operations ...admissionregistrationv1.OperationType) {
	w.t.Helper()
	startup := "object.spec.template.spec.behaviour.vm.provisioning.startupDuration"
	w.policy("infrastructure.cluster.x-k8s.io", "v1alpha1", "inmemorymachinetemplates", operations, fmt.Sprintf(
		`[JSONPatch{op: "replace", path: "/spec/template/spec/behaviour/vm/provisioning/startupDuration", value: string(duration(%s))}]`, startup))
	w.policy("controlplane.cluster.x-k8s.io", "v1beta1", "kubeadmcontrolplanes", operations,
		fmt.Sprintf(`[JSONPatch{op: "replace", path: "/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/timeoutForControlPlane", value: string(duration(%s))}]`,
			"object.spec.kubeadmConfigSpec.clusterConfiguration.apiServer.timeoutForControlPlane"))
	w.policy("bootstrap.cluster.x-k8s.io", "v1beta1", "kubeadmconfigtemplates", operations,
		`[JSONPatch{op: "add", path: "/spec/template/spec/files/0/permissions", value: "0600"}]`)
	// Policies do not take effect at the same time.
	w.waitInForce(infrastructure("InMemoryMachineTemplate"), "spec.template.spec.behaviour.vm.provisioning.startupDuration", "1s", map[string]any{
		"template": map[string]any{"spec": map[string]any{"behaviour": map[string]any{"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "1000ms"}}}}},
	})
	w.waitInForce(bootstrapv1beta1.GroupVersion.WithKind("KubeadmConfigTemplate"), "spec.template.spec.files", []any{
		map[string]any{"path": "/etc/motd", "content": "hello", "permissions": "0600"},
	}, map[string]any{
		"template": map[string]any{"spec": map[string]any{"files": []any{map[string]any{"path": "/etc/motd", "content": "hello"}}}},
	})
	w.waitInForce(controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlane"), "spec.kubeadmConfigSpec.clusterConfiguration.apiServer.timeoutForControlPlane", "3600s", map[string]any{
		"version": "v1.30.0", "machineTemplate": map[string]any{"infrastructureRef": map[string]any{"kind": "A", "name": "a"}},
		"kubeadmConfigSpec": map[string]any{"clusterConfiguration": map[string]any{"apiServer": map[string]any{"timeoutForControlPlane": "60m"}}},
	})
}

// waitInForce waits until a policy changes an object's spec as expected.
func (w *world) waitInForce(kind schema.GroupVersionKind, path string, want any, spec map[string]any) {
	w.t.Helper()
	w.eventually("the policy for "+kind.Kind+" is in force", func() error {
		probe := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
		probe.SetGroupVersionKind(kind)
		probe.SetNamespace(w.namespace)
		probe.SetName("probe")
		probe.SetLabels(map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""})
		if err := w.Create(w.t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if diff := cmp.Diff(want, fieldOf(probe, path)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// policy adds a policy that mutates objects of topologies in the world's namespace.
func (w *world) policy(group, version, resource string, operations []admissionregistrationv1.OperationType, expression string) {
	w.t.Helper()
	name := resource + "." + w.namespace
	fail, never := admissionregistrationv1.Fail, admissionregistrationv1.NeverReinvocationPolicy
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: never,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
				ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: clusterv1.ClusterTopologyOwnedLabel, Operator: metav1.LabelSelectorOpExists},
				}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, o := range []client.Object{policy, binding} {
		if err := w.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = w.Delete(w.t.Context(), o) })
	}
}

// revisions returns the names and resource versions of all objects of a Cluster's topology.
func (w *world) revisions(c *clusterv1.Cluster) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, u := range w.objects(c) {
		all[kindAndName(&u)] = u.GetResourceVersion()
	}
	return all
}

// restarted returns a new controller with empty caches of its own.
func (w *world) restarted() *world {
	fresh := *w
	fresh.control = newController(w.runner.Clients, w.cached, plan.NewClasses(nil))
	fresh.runner = fresh.control.declared().Runner(fresh.control.Clients)
	return &fresh
}

// patchesOf returns the writes of objects other than Clusters.
func patchesOf(requests []string) []string {
	return slices.DeleteFunc(normalized(requests), func(r string) bool { return strings.HasPrefix(r, "PATCH clusters/") })
}

func TestPoliciesThatNormalizeObjects(t *testing.T) {
	both := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	for _, tc := range []struct {
		reason     string
		operations []admissionregistrationv1.OperationType
	}{
		{"policies that change every write", both},
		{"policies that change creations, but not updates", both[:1]},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t)
			w.addPolicies(tc.operations...)
			w.extendTemplates()
			c := w.cluster("c")
			c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"1000ms"`)}}
			w.created(c)
			w.reconciled(c)
			worker := w.one("InMemoryMachineTemplate", "c-md-0", c)
			w.expect("the policy applies", "1s", fieldOf(worker, "spec.template.spec.behaviour.vm.provisioning.startupDuration"))
			w.expect("the policy applies to lists", "0600", fieldOf(w.one("KubeadmConfigTemplate", "c-md-0", c), "spec.template.spec.files").([]any)[0].(map[string]any)["permissions"])
			w.expectQuiet(c, "the creation", 2)
			made := w.revisions(c)

			again := w.restarted()
			again.expectQuiet(c, "a restart", 1)
			w.expect("a restart changes nothing", made, w.revisions(c))

			changed(w, c, func(c *clusterv1.Cluster) {
				c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"2000ms"`)}}
			})
			w.expect("a change of the desired content rotates once", []string{
				"DELETE inmemorymachinetemplates/c-md-0-XXXXX", "DRY-RUN inmemorymachinetemplates/c-md-0-XXXXX",
				"PATCH inmemorymachinetemplates/c-md-0-XXXXX", "PATCH machinedeployments/c-md-0-XXXXX",
			}, patchesOf(w.reconciled(c)))
			w.expectQuiet(c, "the rotation", 1)

			template := &unstructured.Unstructured{}
			template.SetGroupVersionKind(infrastructure("InMemoryMachineTemplate"))
			template.SetNamespace(w.namespace)
			template.SetName("worker-machine")
			changed(w, template, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"tier": "large"}) })
			w.expect("labels of a changed template are updated in place", []string{"PATCH inmemorymachinetemplates/c-md-0-XXXXX"}, patchesOf(w.reconciled(c)))
			worker = w.one("InMemoryMachineTemplate", "c-md-0", c)
			w.expect("its content is kept", []any{"2s", "large", int64(1)}, []any{
				fieldOf(worker, "spec.template.spec.behaviour.vm.provisioning.startupDuration"), worker.GetLabels()["tier"], worker.GetGeneration(),
			})
			w.expectQuiet(c, "a change of labels", 1)
		})
	}
}

// extendTemplates adds fields to the class's templates that the policies change: a file without permissions, and a timeout
// in minutes.
func (w *world) extendTemplates() {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta1")
	u.SetKind("KubeadmConfigTemplate")
	u.SetNamespace(w.namespace)
	u.SetName("worker-bootstrap")
	changed(w, u, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"path": "/etc/motd", "content": "hello"}}, "spec", "template", "spec", "files")
	})
	u = &unstructured.Unstructured{}
	u.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta1")
	u.SetKind("KubeadmControlPlaneTemplate")
	u.SetNamespace(w.namespace)
	u.SetName("cp")
	changed(w, u, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "60m", "spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", "apiServer", "timeoutForControlPlane")
	})
}

// expectQuiet reconciles repeatedly. It expects at most the given number of requests, and that no object is created
// or deleted.
func (w *world) expectQuiet(c *clusterv1.Cluster, after string, requests int) {
	w.t.Helper()
	w.expectCached(c, after)
	names := w.summary(c)
	var sent []string
	for range 12 {
		if _, err := w.runner.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			w.t.Fatalf("after %s: %v", after, err)
		}
		got := patchesOf(w.requests.take())
		sent = append(sent, got...)
		w.expectCached(c, after)
	}
	if len(sent) > requests {
		w.t.Errorf("after %s: %d requests, want at most %d: %v", after, len(sent), requests, sent[:min(len(sent), 8)])
	}
	w.expect("after "+after+": objects", names, w.summary(c))
}

// Templates of other releases have no annotation with the desired content, so they are compared by a dry run, once.
func TestTemplatesOfOtherReleasesAreKept(t *testing.T) {
	w := newWorld(t)
	w.addPolicies(admissionregistrationv1.Create, admissionregistrationv1.Update)
	w.extendTemplates()
	c := w.cluster("c")
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"1000ms"`)}}
	w.created(c)
	w.reconciled(c)
	for _, u := range w.objects(c) {
		if strings.HasSuffix(u.GetKind(), clusterv1.TemplateSuffix) {
			changed(w, &u, func(u *unstructured.Unstructured) {
				annotations := u.GetAnnotations()
				delete(annotations, desired.ContentAnnotation)
				u.SetAnnotations(annotations)
			})
		}
	}
	made := w.revisions(c)
	for range 2 {
		fresh := w.restarted()
		w.requests.take()
		w.expect("one dry run for each template that a policy changes", []string{
			"DRY-RUN inmemorymachinetemplates/c-md-0-XXXXX", "DRY-RUN kubeadmconfigtemplates/c-md-0-XXXXX", "PATCH kubeadmcontrolplanes/c-XXXXX",
		}, patchesOf(fresh.reconciled(c)))
		fresh.expectQuiet(c, "the dry runs", 0)
		w.expect("nothing is written", made, w.revisions(c))
	}
}

// TestNothingIsReplacedWhileUpdatesAreForbidden has a template of another release, whose comparison requires a dry run, and a
// policy that forbids its updates for a while.
func TestNothingIsReplacedWhileUpdatesAreForbidden(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	template := w.one("InMemoryMachineTemplate", "c-md-0", c)
	changed(w, template, func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		delete(annotations, desired.ContentAnnotation)
		u.SetAnnotations(annotations)
	})
	changed(w, c, func(c *clusterv1.Cluster) {
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"2000ms"`)}}
	})
	made := w.summary(c)
	unblock := w.blockUpdates(template)

	for range 2 {
		_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		if !apierrors.IsForbidden(err) {
			t.Errorf("err = %v, want the dry run to be forbidden", err)
		}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		w.waitCached(c)
	}
	w.expect("nothing is created or deleted", made, w.summary(c))
	got := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	if got == nil || got.Reason != clusterv1.TopologyReconcileFailedV1Beta1Reason || !strings.Contains(got.Message, "maintenance until noon") {
		t.Errorf("condition = %v, want one with the message of the policy", got)
	}

	unblock()
	w.expect("the change is applied afterwards", []string{
		"DELETE inmemorymachinetemplates/c-md-0-XXXXX", "DRY-RUN inmemorymachinetemplates/c-md-0-XXXXX",
		"PATCH inmemorymachinetemplates/c-md-0-XXXXX", "PATCH machinedeployments/c-md-0-XXXXX",
	}, patchesOf(w.reconciled(c)))
}

// blockUpdates forbids updates of a machine template's kind in the world's namespace until unblock is called.
func (w *world) blockUpdates(template *unstructured.Unstructured) (unblock func()) {
	w.t.Helper()
	fail, forbidden := admissionregistrationv1.Fail, metav1.StatusReasonForbidden
	name := "maintenance." + w.namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{template.GroupVersionKind().Group}, APIVersions: []string{"*"}, Resources: []string{"inmemorymachinetemplates"},
					},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Reason: &forbidden, Message: "maintenance until noon"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		if err := w.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = w.Delete(w.t.Context(), o) })
	}
	update := func() error {
		probe := template.DeepCopy()
		probe.SetLabels(map[string]string{"probe": ""})
		return w.Update(w.t.Context(), probe, client.DryRunAll)
	}
	w.eventually("the policy is in force", func() error {
		if err := update(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("an update is not forbidden: %w", err)
		}
		return nil
	})
	return func() {
		w.t.Helper()
		if err := w.Delete(w.t.Context(), binding); err != nil {
			w.t.Fatal(err)
		}
		w.eventually("the policy is removed", update)
	}
}

// An edited template does not have the content that the topology wants, so it is replaced.
func TestEditedTemplatesAreReplaced(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	path := []string{"spec", "template", "spec", "behaviour", "vm", "provisioning", "startupDuration"}
	changed(w, w.one("InMemoryMachineTemplate", "c-md-0", c), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "77s", path...)
	})
	w.reconciled(c)
	w.expectQuiet(c, "the edit", 0)
	w.expect("the content", "10s", fieldOf(w.one("InMemoryMachineTemplate", "c-md-0", c), strings.Join(path, ".")))
}

func TestFieldsAddedByOthers(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	for _, u := range w.objects(c) {
		changed(w, &u, func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			labels["cost-center"] = "42"
			u.SetLabels(labels)
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["scanned"] = "yes"
			u.SetAnnotations(annotations)
			u.SetFinalizers(append(u.GetFinalizers(), "example.com/backup"))
			switch u.GetKind() {
			case "KubeadmControlPlane":
				_ = unstructured.SetNestedStringSlice(u.Object, []string{"true"}, "spec", "kubeadmConfigSpec", "preKubeadmCommands")
			case "InMemoryMachineTemplate":
				_ = unstructured.SetNestedField(u.Object, "9s", "spec", "template", "spec", "behaviour", "node", "provisioning", "startupDuration")
			}
		})
	}
	made := w.revisions(c)
	w.expectQuiet(c, "the added fields", 0)
	w.restarted().expectQuiet(c, "a restart", 0)
	w.expect("nothing is written", made, w.revisions(c))
}
