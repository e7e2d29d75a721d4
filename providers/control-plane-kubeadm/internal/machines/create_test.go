package machines

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestMachineNames(t *testing.T) {
	b := kcptest.New(t)
	name := func() string {
		t.Helper()
		n, err := machineName(b.ControlPlane, nil)
		testenv.Must(t, err)
		return n
	}
	first := name()
	if again := name(); first != again {
		t.Errorf("the same Machines result in two names, %s and %s", first, again)
	}
	b.Machines = []*snapshot.Machine{{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}}
	second := name()
	b.Machines[0].UID = "b"
	third := name()
	if first == second || second == third || !strings.HasPrefix(first, "cp-") || len(first) != len("cp-")+5 {
		t.Errorf("names %s, %s, %s", first, second, third)
	}
	b.KCP.Annotations = map[string]string{clusterv1.RestoredAnnotation: "2026-01-02T03:04:05Z"}
	if fourth := name(); fourth == third {
		t.Errorf("after a restore, a Machine would have the same name %s again, which another machine may have", fourth)
	}
	b.KCP.Annotations = map[string]string{fleetv1.OperatedAnnotation: "uid"}
	if fifth := name(); fifth == third {
		t.Errorf("after an operation, a Machine would have the same name %s again, which lost hardware may have", fifth)
	}
	b.KCP.Annotations = nil
	b.KCP.Spec.MachineNaming.Template = "{{ .cluster.name }}-cp-{{ .random }}"
	if got, want := name(), b.Cluster.Name+"-cp-"+strings.TrimPrefix(third, "cp-"); got != want {
		t.Errorf("by a template: %s, want %s", got, want)
	}
	b.KCP.Spec.MachineNaming.Template = "{{ .machineSet.name }}-{{ .random }}"
	if _, err := machineName(b.ControlPlane, nil); err == nil || !strings.Contains(err.Error(), "spec.machineNaming.template") {
		t.Errorf("error %v, want one that names the field", err)
	}
}

// TestNamesOfInfrastructure: infrastructure machines have the name of their Machine, or one that begins with that of their template;
// an interrupted creation is continued, whatever the flag is then.
func TestNamesOfInfrastructure(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericMachine"}
	template := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: "GenericMachineTemplate"}
	for _, deprecated := range []bool{false, true} {
		build := object.Builder{Namespace: "ns"}
		b := kcptest.New(t, object.CRD(kind), object.CRD(template), build.Template(template, "big"))
		b.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(template, "big")
		mgr := manager(b)
		mgr.NamedAfterTemplates = deprecated
		if err := mgr.Create(t.Context(), b.ControlPlane, "", Initialize); err != nil {
			t.Fatal(err)
		}
		m := b.Machines[0]
		name := m.Spec.InfrastructureRef.Name
		if deprecated != strings.HasPrefix(name, "big-") || deprecated == (name == m.Name) {
			t.Errorf("deprecated naming %t: infrastructure %s of Machine %s", deprecated, name, m.Name)
		}
		infrastructure := &unstructured.Unstructured{}
		infrastructure.SetGroupVersionKind(kind)
		key := client.ObjectKey{Namespace: "ns", Name: name}
		testenv.Must(t, b.API.Get(t.Context(), key, infrastructure))
		testenv.Must(t, b.API.Delete(t.Context(), infrastructure))
		m.Infrastructure = nil
		mgr.NamedAfterTemplates = !deprecated
		_, err := mgr.Complete(t.Context(), b.ControlPlane)
		if err := cmp.Or(err, b.API.Get(t.Context(), key, infrastructure)); err != nil {
			t.Errorf("deprecated naming %t: the creation is not continued: %v", deprecated, err)
		}
	}
}
