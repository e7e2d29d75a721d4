package healthcheck

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	requestKind  = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "RepairRequest"}
	templateKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "RepairRequestTemplate"}
)

// externally makes requests from template r.
func externally(h *clusterv1.MachineHealthCheck) {
	h.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
		APIVersion: templateKind.GroupVersion().String(), Kind: templateKind.Kind, Name: "r",
	}
}

func template() *unstructured.Unstructured {
	return build.Provided(templateKind, "r", object.Fields{"spec": object.Fields{"template": object.Fields{
		"metadata": object.Fields{"labels": object.Fields{"tier": "one"}}, "spec": object.Fields{"strategy": "reboot"},
	}}})
}

// requestFor returns the request for a Machine; nil if it does not exist.
func (w *world) requestFor(machine string) *unstructured.Unstructured {
	w.Helper()
	r := &unstructured.Unstructured{}
	r.SetGroupVersionKind(requestKind)
	err := w.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: machine}, r)
	if apierrors.IsNotFound(err) {
		return nil
	}
	testenv.Must(w, err)
	return r
}

func (w *world) conditionOf(t clusterv1.ConditionType) string {
	c := condition.Get(w.health(), t)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + string(c.Severity) + " " + c.Reason
}

func TestExternalRemediation(t *testing.T) {
	w := newWorld(t, check("100%", externally), running("a", "b", "c")...)
	testenv.Must(t, w.Create(t.Context(), template()))
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	equal(t, "owners are not asked", []string{
		"a: False UnhealthyNode, external False WaitingForRemediation", "b: False UnhealthyNode, external False WaitingForRemediation", "c: True",
	}, w.marks())
	r := w.requestFor("b")
	if r == nil || w.requestFor("a") == nil || w.requestFor("c") != nil {
		t.Fatal("a and b must have a request, c must not")
	}
	equal(t, "labels", map[string]string{"tier": "one", clusterv1.ClusterNameLabel: "c"}, r.GetLabels())
	equal(t, "owner", []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "b", UID: w.machine("b").UID}}, r.GetOwnerReferences())
	strategy, _, _ := unstructured.NestedString(r.Object, "spec", "strategy")
	equal(t, "content", "reboot", strategy)
	w.Writes, w.LiveReads = nil, nil
	w.settled()
	equal(t, "writes and live reads while the requests are pending", nil, append(w.Writes, w.LiveReads...))

	w.becomes(corev1.ConditionTrue, 0, "b")
	w.Clock.Step(time.Minute)
	w.settled()
	if w.requestFor("b") != nil || w.requestFor("a") == nil {
		t.Error("only the request of the recovered Machine must be deleted")
	}
	equal(t, "marks", []string{"a: False UnhealthyNode, external False WaitingForRemediation", "b: True", "c: True"}, w.marks())
}

func TestExternalRemediationIsLimited(t *testing.T) {
	w := newWorld(t, check("1", externally), running("a", "b", "c")...)
	testenv.Must(t, w.Create(t.Context(), template()))
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b")
	w.settled()
	if w.requestFor("a") != nil || w.requestFor("b") != nil {
		t.Error("there must be no request")
	}
	equal(t, "status", "1/3, 0 allowed, False TooManyUnhealthy", w.status())
	equal(t, "marks", []string{"a: False UnhealthyNode", "b: False UnhealthyNode", "c: True"}, w.marks())

	h := w.health()
	h.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(2))
	testenv.Must(t, w.Update(t.Context(), h))
	w.settled()
	equal(t, "marks of Machines that may be remediated later", []string{
		"a: False UnhealthyNode, external False WaitingForRemediation", "b: False UnhealthyNode, external False WaitingForRemediation", "c: True",
	}, w.marks())
}

func TestTemplateIsMissing(t *testing.T) {
	w := newWorld(t, check("100%", externally), running("a")...)
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.settled()
	equal(t, "template", "False Error ExternalRemediationTemplateNotFound", w.conditionOf(clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition))
	equal(t, "marks", []string{"a: False UnhealthyNode, external False RemediationTemplateNotFound"}, w.marks())
	testenv.Must(t, w.Create(t.Context(), template()))
	w.Clock.Step(templateBackstop)
	w.settled()
	equal(t, "template", "True  ", w.conditionOf(clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition))
	if w.requestFor("a") == nil {
		t.Error("a must have a request")
	}
	equal(t, "marks", []string{"a: False UnhealthyNode, external False WaitingForRemediation"}, w.marks())
}

// TestRequestFails checks that a request that cannot be created is reported, and does not stop the others.
func TestRequestFails(t *testing.T) {
	w := newWorld(t, check("100%", externally), running("a", "b", "c")...)
	other := build.Provided(requestKind, "b", object.Fields{})
	other.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "b", UID: "former"}})
	testenv.Must(t, w.Create(t.Context(), template()), w.Create(t.Context(), other))
	w.becomes(corev1.ConditionUnknown, time.Hour, "a", "b", "c")
	w.Before = func(r fakeapi.Request) error {
		if r.String() == "create RepairRequest a" {
			return errors.New("denied")
		}
		return nil
	}
	_, err := w.reconcile(w.check)
	if err == nil {
		t.Error("the failure must be retried")
	}
	equal(t, "request", "False Error ExternalRemediationRequestCreationFailed", w.conditionOf(clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition))
	if w.requestFor("c") == nil {
		t.Error("c must have a request")
	}
	equal(t, "marks", []string{
		"a: False UnhealthyNode, external False RemediationRequestCreationFailed", "b: False UnhealthyNode, external False RemediationRequestCreationFailed",
		"c: False UnhealthyNode, external False WaitingForRemediation",
	}, w.marks())
	w.Before = nil
	testenv.Must(t, w.Delete(t.Context(), other))
	w.Clock.Step(time.Minute)
	w.settled()
	equal(t, "request", "True  ", w.conditionOf(clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition))
	for _, name := range []string{"a", "b", "c"} {
		if r := w.requestFor(name); r == nil || r.GetOwnerReferences()[0].UID != w.machine(name).UID {
			t.Errorf("Machine %s has no request", name)
		}
	}
	equal(t, "marks", []string{
		"a: False UnhealthyNode, external False WaitingForRemediation", "b: False UnhealthyNode, external False WaitingForRemediation",
		"c: False UnhealthyNode, external False WaitingForRemediation",
	}, w.marks())
}

// TestTemplateIsRemoved checks that a stale cache of the check does not lead to requests that the check no longer makes.
func TestTemplateIsRemoved(t *testing.T) {
	w := newWorld(t, check("100%", externally), running("a")...)
	testenv.Must(t, w.Create(t.Context(), template()))
	w.begin()
	w.becomes(corev1.ConditionUnknown, time.Hour, "a")
	w.Cache.Freeze(&clusterv1.MachineHealthCheckList{})
	h := w.health()
	h.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{}
	testenv.Must(t, w.Update(t.Context(), h))
	after, err := w.reconcile(w.check)
	testenv.Must(t, err)
	equal(t, "next reconcile", step.CacheBackstop, after)
	if w.requestFor("a") != nil {
		t.Error("there must be no request")
	}
}

// TestObjectsOfOthersAreNotDeleted checks that a recovery deletes only what the Machine owns.
func TestObjectsOfOthersAreNotDeleted(t *testing.T) {
	w := newWorld(t, check("100%", externally), running("a")...)
	testenv.Must(t, w.Create(t.Context(), template()), w.Create(t.Context(), build.Provided(requestKind, "a", object.Fields{})))
	w.settled()
	if w.requestFor("a") == nil {
		t.Error("an object that the Machine does not own was deleted")
	}
}
