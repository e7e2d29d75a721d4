package clusterclass

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// build builds objects in the namespace of the class.
var build = object.Builder{Namespace: "ns"}

func kindOf(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "test.io", Version: "v2", Kind: name}
}

// world is an API server with class "class" and the templates "infra" and "cp". It records watches.
type world struct {
	*fakeapi.Server
	runner  *step.Runner[*clusterv1.ClusterClass]
	control *Controller
	watched []string
}

func ref(kind, version, name string) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: "test.io/" + version, Kind: kind, Name: name}
}

func template(kind, name string) *unstructured.Unstructured {
	return build.Template(kindOf(kind), name)
}

func class(version string) *clusterv1.ClusterClass {
	c := &clusterv1.ClusterClass{ObjectMeta: build.Meta("ClusterClass", "class")}
	c.Generation = 2
	c.Spec.Infrastructure.TemplateRef = ref("InfraTemplate", version, "infra")
	c.Spec.ControlPlane.TemplateRef = ref("ControlTemplate", version, "cp")
	c.Spec.Variables = []clusterv1.ClusterClassVariable{{Name: "size", Required: ptr.To(true), Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string"}}}}
	return c
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	for _, kind := range []string{"InfraTemplate", "ControlTemplate"} {
		objects = append(objects, object.CRD(kindOf(kind), "v1"))
	}
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Objects: objects})}
	clients := w.ForController()
	w.control = &Controller{
		Clients: clients, Versions: contract.APIVersions{Reader: clients.Client}, External: fakeapi.External(clients),
		Watch: func(_ context.Context, kind schema.GroupVersionKind) error {
			w.watched = append(w.watched, kind.Kind)
			return nil
		},
	}
	w.runner = w.control.declared().Runner(w.control.Clients)
	return w
}

func (w *world) reconcile(t *testing.T) (*clusterv1.ClusterClass, error) {
	t.Helper()
	w.Writes = nil
	_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "class"}})
	got := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "class"}, got))
	return got, err
}

func TestReconcile(t *testing.T) {
	w := newWorld(t, class("v2"), template("InfraTemplate", "infra"), template("ControlTemplate", "cp"))
	got, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"patch InfraTemplate infra", "patch ControlTemplate cp", "patch ClusterClass/status class"}, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
	definition := clusterv1.ClusterClassStatusVariableDefinition{From: "inline", Required: ptr.To(true), Schema: class("v2").Spec.Variables[0].Schema}
	want := []clusterv1.ClusterClassStatusVariable{{Name: "size", DefinitionsConflict: ptr.To(false), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{definition}}}
	if diff := cmp.Diff(want, got.Status.Variables); diff != "" {
		t.Errorf("variables, -want +got:\n%s", diff)
	}
	for _, c := range []clusterv1.ConditionType{clusterv1.ClusterClassVariablesReconciledV1Beta1Condition, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition} {
		if !condition.IsTrue(got, c) {
			t.Errorf("condition %s is not True: %v", c, got.GetV1Beta1Conditions())
		}
	}
	if got.Status.ObservedGeneration != 2 {
		t.Errorf("observed generation = %d, want 2", got.Status.ObservedGeneration)
	}
	owned := template("InfraTemplate", "infra")
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(owned), owned))
	owners := []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "ClusterClass", Name: "class", UID: object.UID("ClusterClass", "class")}}
	if diff := cmp.Diff(owners, owned.GetOwnerReferences()); diff != "" {
		t.Errorf("owners of a template, -want +got:\n%s", diff)
	}
	if _, err := w.reconcile(t); err != nil || len(w.Writes) != 0 {
		t.Errorf("second reconcile writes %v, err = %v; want no writes", w.Writes, err)
	}
	if diff := cmp.Diff([]string{"InfraTemplate", "ControlTemplate", "InfraTemplate", "ControlTemplate"}, w.watched); diff != "" {
		t.Errorf("kinds watched, -want +got:\n%s", diff)
	}
}

func TestOutdatedReferences(t *testing.T) {
	w := newWorld(t, class("v1"), template("InfraTemplate", "infra"), template("ControlTemplate", "cp"))
	got, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	const lines = "The following templateRefs are not using the latest apiVersion:\n* InfraTemplate infra: current: v1, latest: v2\n" +
		"* ControlTemplate cp: current: v1, latest: v2"
	c := condition.Get(got, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition)
	if c == nil || c.Reason != clusterv1.ClusterClassOutdatedRefVersionsV1Beta1Reason || c.Severity != clusterv1.ConditionSeverityWarning ||
		c.Message != lines {
		t.Errorf("condition = %v", c)
	}
	if r := report.Get(got, "RefVersionsUpToDate"); r == nil || r.Reason != "RefVersionsNotUpToDate" || r.Message != lines {
		t.Errorf("metav1 condition = %v", r)
	}
	if !report.IsTrue(got, "VariablesReady") || !report.IsFalse(got, "Paused") {
		t.Errorf("metav1 conditions: %v", got.GetConditions())
	}
}

func TestMissingTemplate(t *testing.T) {
	w := newWorld(t, class("v2"), template("InfraTemplate", "infra"))
	result, err := w.control.own(t.Context(), &scope{ClusterClass: class("v2")})
	if want := "ControlTemplate ns/cp to exist"; err != nil || result.Waiting() != want || result.After() != 0 {
		t.Errorf("waits for %q, at most %s, err = %v; want %q without a deadline", result.Waiting(), result.After(), err, want)
	}
	w = newWorld(t, class("v2"), template("InfraTemplate", "infra"))
	got, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.ObservedGeneration != 0 {
		t.Error("a class with a missing template must not be marked as reconciled")
	}
	if diff := cmp.Diff([]string{"patch InfraTemplate infra", "patch ClusterClass/status class"}, w.Writes); diff != "" {
		t.Errorf("existing templates are owned, -want +got:\n%s", diff)
	}
	testenv.Must(t, w.Create(t.Context(), template("ControlTemplate", "cp")))
	if got, err = w.reconcile(t); err != nil || got.Status.ObservedGeneration != 2 {
		t.Errorf("observed generation = %d, err = %v; want 2 once the template exists", got.Status.ObservedGeneration, err)
	}
}

func TestDiscovery(t *testing.T) {
	w := newWorld(t, class("v2"), template("InfraTemplate", "infra"), template("ControlTemplate", "cp"))
	var discoverErr error
	w.control.Discover = func(context.Context, *clusterv1.ClusterClass) ([]variables.Source, error) {
		return []variables.Source{{From: "patch", Variables: []clusterv1.ClusterClassVariable{{Name: "size", Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "integer"}}}}}}, discoverErr
	}
	got, err := w.reconcile(t)
	if err != nil || len(got.Status.Variables) != 1 || !ptr.Deref(got.Status.Variables[0].DefinitionsConflict, false) || len(got.Status.Variables[0].Definitions) != 2 {
		t.Errorf("variables = %v, err = %v; want one variable with two conflicting definitions", got.Status.Variables, err)
	}
	discoverErr = errors.New("the extension is unavailable")
	got, err = w.reconcile(t)
	c := condition.Get(got, clusterv1.ClusterClassVariablesReconciledV1Beta1Condition)
	if err == nil || c == nil || c.Reason != clusterv1.VariableDiscoveryFailedV1Beta1Reason || c.Severity != clusterv1.ConditionSeverityError {
		t.Errorf("condition = %v, err = %v", c, err)
	}
	if len(got.Status.Variables) != 1 {
		t.Errorf("previous variables must be kept: %v", got.Status.Variables)
	}
}

// A class can be created before its provider is installed. That is not an error, so there are no retries.
// TestVariablesThatCannotBeStored is about an extension whose definitions are valid, but make the class too large for etcd.
func TestVariablesThatCannotBeStored(t *testing.T) {
	w := newWorld(t, template("InfraTemplate", "infra"), template("ControlTemplate", "cp"), class("v2"))
	large := clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string", Description: strings.Repeat("x", 1<<20)}}
	w.control.Discover = func(context.Context, *clusterv1.ClusterClass) ([]variables.Source, error) {
		return []variables.Source{
			{From: "a", Variables: []clusterv1.ClusterClassVariable{{Name: "a", Schema: large}}},
			{From: "b", Variables: []clusterv1.ClusterClassVariable{{Name: "b", Schema: large}}},
		}, nil
	}
	got, err := w.reconcile(t)
	const want = "more than can be stored (1572864): the class or its extensions must define fewer or smaller ones"
	reconciled := condition.Get(got, clusterv1.ClusterClassVariablesReconciledV1Beta1Condition)
	if err == nil || reconciled == nil || reconciled.Status != corev1.ConditionFalse || !strings.Contains(reconciled.Message, want) {
		t.Errorf("err = %v, condition = %v, want one with %q", err, reconciled, want)
	}
}

func TestMissingDefinition(t *testing.T) {
	const name = "othertemplates.test.io"
	waits := class("v2")
	waits.Spec.ControlPlane.TemplateRef = ref("OtherTemplate", "v2", "cp")
	waits.Spec.ControlPlane.MachineInfrastructure.TemplateRef = ref("OtherTemplate", "v2", "machines")
	w := newWorld(t, waits, template("InfraTemplate", "infra"))
	result, err := w.control.own(t.Context(), &scope{ClusterClass: waits.DeepCopy()})
	if want := "CustomResourceDefinition " + name + " to exist"; err != nil || result.Waiting() != want || result.After() != 0 {
		t.Errorf("waits for %q, at most %s, err = %v; want %q without a deadline", result.Waiting(), result.After(), err, want)
	}
	var logged []string
	log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	ctx := ctrl.LoggerInto(t.Context(), log)
	for range 3 {
		if _, err := w.runner.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "class"}}); err != nil {
			t.Fatal(err)
		}
	}
	got := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(waits), got))
	c := condition.Get(got, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition)
	if c == nil || c.Status != corev1.ConditionUnknown || c.Reason != clusterv1.ClusterClassProviderNotInstalledV1Beta1Reason ||
		c.Message != "OtherTemplate.test.io: CustomResourceDefinition "+name+" does not exist: install its provider" {
		t.Errorf("condition = %+v", c)
	}
	if len(logged) != 1 || !strings.Contains(logged[0], name) || got.Status.ObservedGeneration != 0 {
		t.Errorf("observed generation %d, logged %q; want one line, and an unobserved generation", got.Status.ObservedGeneration, logged)
	}
	for _, o := range []client.Object{object.CRD(kindOf("OtherTemplate")), template("OtherTemplate", "cp"), template("OtherTemplate", "machines")} {
		testenv.Must(t, w.Create(t.Context(), o))
	}
	if got, err = w.reconcile(t); err != nil || got.Status.ObservedGeneration != 2 || !condition.IsTrue(got, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition) {
		t.Errorf("status = %+v, err = %v; want a reconciled class once the provider is installed", got.Status, err)
	}
}

func TestDefinitionsMapToClasses(t *testing.T) {
	s := fakeapi.New(t, fakeapi.Options{
		Objects: []client.Object{class("v2")}, Indexes: []step.Index{{Object: &clusterv1.ClusterClass{}, Field: definitionIndex, Values: definitionKeys}},
	})
	for name, want := range map[string]int{"infratemplates.test.io": 1, "othertemplates.test.io": 0} {
		definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if got := ofDefinition(s)(t.Context(), definition); len(got) != want {
			t.Errorf("definition %s maps to %v, want %d classes", name, got, want)
		}
	}
}
