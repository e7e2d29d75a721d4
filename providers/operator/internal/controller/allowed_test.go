package controller

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const clusterRole = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: []}"

// TestForeignObjects: an object of nobody is not overwritten, until a user says whose it is.
func TestForeignObjects(t *testing.T) {
	release := simpleConfigMap("x-system", "x", "v1.0.0")
	adds(clusterRole)(release)
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r", Labels: map[string]string{"team": "a"}}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/foreign"}, Verbs: []string{"get"}}}}
	w := newWorld(t, release, foreign)
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsRefused: ", "ClusterRole r exists already, and is of no provider",
		"kubectl label clusterrole.rbac.authorization.k8s.io r cluster.x-k8s.io/provider=infrastructure-x")
	w.LiveReads = nil
	p = w.reconcile(p)
	if len(w.LiveReads) > 0 {
		t.Errorf("the same is inspected again: %v", w.LiveReads)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	foreign.Labels = map[string]string{"cluster.x-k8s.io/provider": "infrastructure-x"}
	testenv.Must(t, w.Update(t.Context(), foreign))
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
}

// TestObjectsWrittenBefore: what clusterctl has written is replaced, also if somebody has removed the label of the provider.
func TestObjectsWrittenBefore(t *testing.T) {
	release := simpleConfigMap("x-system", "x", "v1.0.0")
	adds(clusterRole)(release)
	w := newWorld(t, release, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r", Labels: map[string]string{"clusterctl.cluster.x-k8s.io": ""}}})
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
}

// TestAnotherName: a provider that was deleted comes back under another name, at once.
func TestAnotherName(t *testing.T) {
	release := simpleConfigMap("x-system", "x", "v1.0.0")
	adds(clusterRole)(release)
	left := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r", Labels: map[string]string{"cluster.x-k8s.io/provider": "infrastructure-myx"}}}
	other := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "x-system", Name: "myx", UID: "other"}}
	w := newWorld(t, release, left, other)
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsRefused: ", "ClusterRole r belongs to provider infrastructure-myx: delete that provider first")
	testenv.Must(t, w.Delete(t.Context(), other))
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
}

// TestSharedDefinitions: providers of one project may share CustomResourceDefinitions. They stay those of the provider that has them, so that
// two of them do not overwrite each other's, until it is deleted.
func TestSharedDefinitions(t *testing.T) {
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io, annotations: {of: infrastructure}}
spec: {group: x.io, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true}]}
`
	release := simpleConfigMap("x-system", "x", "v1.0.0")
	adds(definition)(release)
	shared := object.CRD(schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Thing"})
	shared.SetLabels(map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "bootstrap-x"})
	shared.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	other := &operatorv1.BootstrapProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "x-system", Name: "x", UID: "other"}}
	w := newWorld(t, release, shared, other)
	w.create(simpleProvider)
	label := func() string {
		testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(shared), shared))
		return shared.GetLabels()["cluster.x-k8s.io/provider"]
	}
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
	const event = "Warning DefinitionsShared CustomResourceDefinition things.x.io belongs to provider bootstrap-x, and stays as it is"
	if events := strings.Join(w.Events(), "\n"); label() != "bootstrap-x" || strings.Count(events, event) != 1 {
		t.Errorf("the definition is of %s, events:\n%s", label(), events)
	}
	p = w.reconcile(p)
	if events := w.Events(); len(events) > 0 {
		t.Errorf("further events: %v", events)
	}
	testenv.Must(t, w.Delete(t.Context(), other))
	p = w.reconcile(p)
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
	if label() != "infrastructure-x" {
		t.Errorf("after the other provider was deleted, the definition is of %s", label())
	}
}
