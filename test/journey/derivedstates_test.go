package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// States of versions between v1.7 and v1.14 were not recorded. What they wrote differently is added to recorded objects.

// derive changes a recorded object to what it is like in another version. reported has the statuses of v1beta2 that v1.14 reported in the
// same state, by role.
type derive func(o *unstructured.Unstructured, reported map[string]any)

// derived returns objects like those of the version that the origin stands for; as they are, if they were recorded. Other origins have the
// same objects, so that they are not changed.
func (o origin) derived(state recorded.State, later []recorded.State) []*unstructured.Unstructured {
	if o.derive == nil {
		return state.Objects
	}
	reported := map[string]any{}
	for _, s := range later {
		if s.Name != state.Name {
			continue
		}
		for _, object := range s.Objects {
			if status, found, _ := unstructured.NestedMap(object.Object, "status", "v1beta2"); found {
				reported[role(object)] = status
			}
		}
	}
	var derived []*unstructured.Unstructured
	for _, object := range state.Objects {
		object = object.DeepCopy()
		o.derive(object, reported)
		derived = append(derived, object)
	}
	return derived
}

// role is what objects of two recordings of the same state have in common.
func role(o *unstructured.Unstructured) string {
	_, controlPlane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
	if o.GetKind() == "MachineHealthCheck" {
		controlPlane = !strings.Contains(o.GetName(), "-md-")
	}
	return fmt.Sprintf("%s, control plane: %t", o.GetKind(), controlPlane)
}

// likeV18 adds to objects of v1.7 what v1.8 and later versions have set before it matters: finalizers of MachineSets and
// MachineDeployments, and the hook of control plane Machines.
func likeV18(o *unstructured.Unstructured, _ map[string]any) {
	switch o.GetKind() {
	case "MachineSet":
		addFinalizer(o, clusterv1.MachineSetFinalizer)
	case "MachineDeployment":
		addFinalizer(o, clusterv1.MachineDeploymentFinalizer)
	case "Machine":
		if _, ok := o.GetLabels()[clusterv1.MachineControlPlaneLabel]; ok {
			annotations := o.GetAnnotations() // v1.7 has set one of its own.
			annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
			o.SetAnnotations(annotations)
		}
	}
}

// addFinalizer adds a finalizer, with the owner that it has in objects of v1.14: who has set the other one.
func addFinalizer(o *unstructured.Unstructured, finalizer string) {
	const other = `{"f:finalizers":{".":{},`
	o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	entries := o.GetManagedFields()
	for i := range entries {
		raw := string(entries[i].FieldsV1.GetRawBytes())
		entries[i].FieldsV1.SetRawBytes([]byte(strings.ReplaceAll(raw, other, other+fmt.Sprintf(`%q:{},`, "v:"+strconv.Quote(finalizer)))))
	}
	o.SetManagedFields(entries)
}

// likeV110 adds to them what v1.9 and v1.10 reported besides: the conditions of v1beta2.
func likeV110(o *unstructured.Unstructured, reported map[string]any) {
	likeV18(o, nil)
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	v1beta2, ok := reported[role(o)].(map[string]any)
	if !ok || status == nil {
		return
	}
	status["v1beta2"] = runtime.DeepCopyJSON(v1beta2)
	o.Object["status"] = status
	conditions, _, _ := unstructured.NestedSlice(v1beta2, "conditions")
	for _, c := range conditions {
		// The class refers to templates in v1beta1. v1.14 has a later version.
		if c := c.(map[string]any); c["type"] == clusterv1.ClusterClassRefVersionsUpToDateCondition {
			c["status"], c["reason"], c["message"] = "True", clusterv1.ClusterClassRefVersionsUpToDateReason, ""
			status["v1beta2"].(map[string]any)["conditions"] = conditions
		}
	}
}

// likeV111 makes the field managers of objects of v1.14 those of v1.11, the first version that stored v1beta2: machines' objects were
// created, not applied, and then their labels and annotations applied by the manager of their spec. v1.12 has begun to tell the two apart.
func likeV111(o *unstructured.Unstructured, _ map[string]any) {
	const metadata = "-metadata"
	entries := o.GetManagedFields()
	of := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return strings.HasSuffix(e.Manager, metadata) })
	if of < 0 {
		return
	}
	owner := strings.TrimSuffix(entries[of].Manager, metadata)
	for i := range entries {
		if entries[i].Manager == owner {
			entries[i].Manager, entries[i].Operation = "manager", metav1.ManagedFieldsOperationUpdate
		}
	}
	entries[of].Manager = owner
	o.SetManagedFields(entries)
}

// definitionsOfV110 writes definitions like those of v1.10 into a folder: those of v1.14 without v1beta2, and of the in-memory provider
// those of v1.7.
func definitionsOfV110(t testing.TB, root string) string {
	t.Helper()
	from, to := filepath.Dir(publishedDefinitions(t, root)), t.TempDir()
	for _, p := range publishedComponents("in-memory") {
		folder := filepath.Join(from, "crds-v1.14", p.folder)
		if p.folder == "inmemory" {
			folder = filepath.Join(from, "crds-v1.7", p.folder)
		}
		objects, err := p.definitions(folder)
		testenv.Must(t, err)
		for _, crd := range objects {
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			testenv.Must(t, err)
			versions = slices.DeleteFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == "v1beta2" })
			versions[len(versions)-1].(map[string]any)["storage"] = true
			testenv.Must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		}
		text, err := join(objects)
		testenv.Must(t, err)
		testenv.Must(t, os.Mkdir(filepath.Join(to, p.folder), 0o700))
		testenv.Must(t, os.WriteFile(filepath.Join(to, p.folder, "definitions.yaml"), []byte(text), 0o600))
	}
	return to
}
