package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// Ready is true when the Cluster and all its Machines match the spec, and their conditions are up to date.
func Ready(s Size) Condition {
	return func(now history.State) error {
		c := now[history.Key{Kind: "Cluster", Name: ClusterName}]
		if c == nil {
			return errors.New("the Cluster does not exist")
		}
		for _, o := range slices.Concat([]*unstructured.Unstructured{c}, now.Of("KubeadmControlPlane"),
			now.Of("MachineDeployment"), now.Of("MachinePool")) {
			if err := observed(o); err != nil {
				return err
			}
		}
		for _, t := range []string{"Ready", "TopologyReconciled", "ControlPlaneInitialized"} {
			if status := Status(c, t); status != "True" {
				return fmt.Errorf("condition %s of the Cluster is %q", t, status)
			}
		}
		controlPlane, workers := Machines(now)
		if err := running(controlPlane, s.ControlPlanes); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		if err := running(workers, s.Workers); err != nil {
			return fmt.Errorf("workers: %w", err)
		}
		return errors.Join(counted(now, s), checked(now, checkedMachines(now, s), 0))
	}
}

// counted checks the replica counters of the control plane and of MachineDeployments or MachinePools.
func counted(now history.State, s Size) error {
	for _, part := range []struct {
		kind   string
		want   int
		fields []string
	}{
		{"KubeadmControlPlane", s.ControlPlanes, []string{"replicas", "updatedReplicas", "readyReplicas"}},
		{"MachineDeployment", s.Workers, []string{"replicas", "updatedReplicas", "readyReplicas"}},
		{"MachinePool", s.Workers, []string{"replicas", "availableReplicas", "readyReplicas"}},
	} {
		for _, o := range now.Of(part.kind) {
			for _, field := range part.fields {
				if have := Number(o, "status", field); have != part.want {
					return fmt.Errorf("status.%s of %s %s is %d, want %d", field, part.kind, o.GetName(), have, part.want)
				}
			}
		}
	}
	return nil
}

// Absent is true when the Cluster and all objects that its controllers created are deleted.
func Absent(now history.State) error {
	for _, kind := range []string{
		"Cluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "MachinePool", "Machine", "KubeadmConfig",
		"InMemoryMachine", "InMemoryMachinePool", "InMemoryCluster",
	} {
		if n := len(now.Of(kind)); n > 0 {
			return fmt.Errorf("%d objects of kind %s still exist", n, kind)
		}
	}
	return nil
}

func observed(o *unstructured.Unstructured) error {
	if g := Number(o, "status", "observedGeneration"); int64(g) != o.GetGeneration() {
		return fmt.Errorf("observed generation of %s %s is %d, want %d", o.GetKind(), o.GetName(), g, o.GetGeneration())
	}
	return nil
}

// Machines returns the control plane Machines and the workers.
func Machines(now history.State) (controlPlane, workers []*unstructured.Unstructured) {
	for _, m := range now.Of("Machine") {
		if _, is := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; is {
			controlPlane = append(controlPlane, m)
		} else {
			workers = append(workers, m)
		}
	}
	return controlPlane, workers
}

func running(machines []*unstructured.Unstructured, n int) error {
	if len(machines) != n {
		return fmt.Errorf("%d Machines, want %d", len(machines), n)
	}
	for _, m := range machines {
		phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
		if phase != "Running" || Status(m, "Ready") != "True" || Status(m, "NodeHealthy") != "True" {
			return fmt.Errorf("machine %s is in phase %q, Ready is %q, NodeHealthy %q",
				m.GetName(), phase, Status(m, "Ready"), Status(m, "NodeHealthy"))
		}
	}
	return nil
}

// Status returns the status of a condition, or "".
func Status(o *unstructured.Unstructured, kind string) string { return ofCondition(o, kind, "status") }

// Reason returns the reason of a condition, or "".
func Reason(o *unstructured.Unstructured, kind string) string { return ofCondition(o, kind, "reason") }

// Message returns the message of a condition, or "".
func Message(o *unstructured.Unstructured, kind string) string {
	return ofCondition(o, kind, "message")
}

func ofCondition(o *unstructured.Unstructured, kind, field string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == kind {
			value, _ := condition[field].(string)
			return value
		}
	}
	return ""
}

// Number returns the value of an integer field, or 0.
func Number(o *unstructured.Unstructured, path ...string) int {
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return int(n)
}

// ClassReady is true when all classes are reconciled, and there is one.
func ClassReady(now history.State) error {
	classes := now.Of("ClusterClass")
	if len(classes) == 0 {
		return errors.New("no ClusterClass exists")
	}
	for _, c := range classes {
		if err := observed(c); err != nil {
			return err
		}
	}
	return nil
}

// Upgraded is true when all Machines and their owners have the second version.
func Upgraded(now history.State) error { return haveVersion(now, secondVersion) }

func haveVersion(now history.State, version string) error {
	for kind, path := range map[string][]string{
		"Machine":             {"spec", "version"},
		"KubeadmControlPlane": {"status", "version"},
		"MachineDeployment":   {"spec", "template", "spec", "version"},
		"MachinePool":         {"spec", "template", "spec", "version"},
	} {
		for _, o := range now.Of(kind) {
			if v, _, _ := unstructured.NestedString(o.Object, path...); v != version {
				return fmt.Errorf("the version of %s %s is %s", kind, o.GetName(), v)
			}
		}
	}
	return nil
}

// Rotated is true when the Machines of this kind are created from the second template.
func Rotated(kind string) Condition {
	return func(now history.State) error {
		for _, owner := range now.Of(kind) {
			path := []string{"spec", "template", "spec", "infrastructureRef", "name"}
			if kind == "KubeadmControlPlane" {
				path = []string{"spec", "machineTemplate", "infrastructureRef", "name"}
			}
			name, _, _ := unstructured.NestedString(owner.Object, path...)
			template := now[history.Key{Kind: "InMemoryMachineTemplate", Name: name}]
			if template == nil {
				return fmt.Errorf("template %s of %s does not exist", name, kind)
			}
			if _, rotated, _ := unstructured.NestedMap(template.Object, "spec", "template", "spec", "behaviour"); !rotated {
				return fmt.Errorf("the template of %s is not rotated yet", kind)
			}
		}
		for _, m := range now.Of("Machine") {
			if err := ofTemplate(now, kind, m); err != nil {
				return err
			}
		}
		return nil
	}
}

// ofTemplate returns an error if a Machine of this kind of owner does not have the behaviour of the second template.
func ofTemplate(now history.State, kind string, m *unstructured.Unstructured) error {
	_, controlPlane := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
	if controlPlane != (kind == "KubeadmControlPlane") {
		return nil
	}
	infrastructure := now[history.Key{Kind: "InMemoryMachine", Name: m.GetName()}]
	if infrastructure == nil {
		return fmt.Errorf("machine %s has no infrastructure", m.GetName())
	}
	if _, rotated, _ := unstructured.NestedMap(infrastructure.Object, "spec", "behaviour"); !rotated {
		return fmt.Errorf("machine %s is not replaced yet", m.GetName())
	}
	return nil
}

// Only is true when only Events, objects that existed before the Cluster, and objects that the user created are left.
func Only(before history.State) Condition {
	return func(now history.State) error {
		for key, o := range now {
			old := before[key]
			if key.Kind == "Event" || old != nil && old.GetUID() == o.GetUID() || strings.HasSuffix(key.Name, rotatedSuffix) ||
				ofResourceSets(key) || ofIPAM(key) || ofBackups(key) {
				continue
			}
			return fmt.Errorf("%s %s still exists", key.Kind, key.Name)
		}
		return nil
	}
}
