package journey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// thirdPartyTemplates are the templates for Machines of the third-party provider, in an older version of its API.
const thirdPartyTemplates = `
apiVersion: thirdparty.example.com/v1alpha1
kind: FooMachineTemplate
metadata: {name: workers}
spec: {template: {metadata: {annotations: {of: template}}, spec: {disks: [{}]}}}
---
apiVersion: thirdparty.example.com/v1alpha1
kind: FooConfigTemplate
metadata: {name: workers}
spec: {template: {spec: {}}}
`

const thirdPartyCluster = `
apiVersion: thirdparty.example.com/v1alpha1
kind: FooCluster
metadata: {name: c}
spec: {}
---
apiVersion: thirdparty.example.com/v1alpha1
kind: FooControlPlane
metadata: {name: c}
spec: {version: v1.30.5}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec:
  infrastructureRef: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooCluster, name: c}
  controlPlaneRef: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooControlPlane, name: c}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: workers}
spec:
  clusterName: c
  replicas: 2
  selector: {matchLabels: {}}
  template:
    metadata: {labels: {node.cluster.x-k8s.io/team: a}}
    spec:
      clusterName: c
      version: v1.30.5
      bootstrap: {configRef: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooConfigTemplate, name: workers}}
      infrastructureRef: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooMachineTemplate, name: workers}
`

const thirdPartyClass = `
apiVersion: thirdparty.example.com/v1alpha1
kind: FooClusterTemplate
metadata: {name: thirdparty}
spec: {template: {spec: {disks: [{}]}}}
---
apiVersion: thirdparty.example.com/v1alpha1
kind: FooControlPlaneTemplate
metadata: {name: thirdparty}
spec: {template: {spec: {disks: [{}, {gb: 5}]}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: thirdparty}
spec:
  infrastructure: {ref: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooClusterTemplate, name: thirdparty}}
  controlPlane: {ref: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooControlPlaneTemplate, name: thirdparty}}
  workers:
    machineDeployments:
    - class: default-worker
      template:
        bootstrap: {ref: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooConfigTemplate, name: workers}}
        infrastructure: {ref: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooMachineTemplate, name: workers}}
  variables:
  - {name: gb, required: true, schema: {openAPIV3Schema: {type: integer, default: 3}}}
  patches:
  - name: add a disk
    definitions:
    - selector: {apiVersion: thirdparty.example.com/v1alpha1, kind: FooMachineTemplate, matchResources: {machineDeploymentClass: {names: ["*"]}}}
      jsonPatches: [{op: add, path: /spec/template/spec/disks/-, valueFrom: {template: "gb: {{ .gb }}"}}]
`

// provisioned is true when the Cluster's status has what the third-party provider reports.
func provisioned(p *Snapshot) error {
	s := p.Cluster.Status
	if !s.InfrastructureReady || !s.ControlPlaneReady || s.Phase != "Provisioned" {
		return fmt.Errorf("the Cluster's status is %+v", s)
	}
	want := clusterv1.FailureDomains{"a": {ControlPlane: true}}
	if diff := cmp.Diff(want, s.FailureDomains); diff != "" {
		return fmt.Errorf("failure domains (-want +got):\n%s", diff)
	}
	if !p.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return fmt.Errorf("the Cluster has no endpoint")
	}
	return nil
}

// refersAsWritten is true when what the user wrote has references of the version in which it was written, so that a repository does not differ,
// and when what controllers created refers to the newest version.
func refersAsWritten(p *Snapshot) error {
	if err := refersToVersion("the Cluster", olderVersion, p.Cluster.Spec.InfrastructureRef); err != nil {
		return err
	}
	if err := refersToVersion("the Cluster", olderVersion, p.Cluster.Spec.ControlPlaneRef); err != nil {
		return err
	}
	for i := range p.Deployments.Items {
		if err := refersToVersion("a MachineDeployment", olderVersion, &p.Deployments.Items[i].Spec.Template.Spec.InfrastructureRef); err != nil {
			return err
		}
	}
	for i := range p.Machines.Items {
		spec := &p.Machines.Items[i].Spec
		for _, ref := range []*corev1.ObjectReference{&spec.InfrastructureRef, spec.Bootstrap.ConfigRef} {
			if err := refersToVersion("a Machine", newestVersion, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// copied is true when a Machine has the values of its infrastructure.
func copied(p *Snapshot) error {
	for _, m := range p.Workers() {
		addresses := clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "192.0.2.1"}}
		if diff := cmp.Diff(addresses, m.Status.Addresses); diff != "" || m.Spec.FailureDomain == nil || *m.Spec.FailureDomain != "a" {
			return fmt.Errorf("Machine %s has failure domain %v, addresses (-want +got):\n%s", m.Name, value(m.Spec.FailureDomain), diff)
		}
	}
	return nil
}

// TestThirdPartyProvider creates a Cluster of a third-party provider, without a class, scales it as an autoscaler does, and
// lets a machine fail permanently.
func TestThirdPartyProvider(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.ThirdPartyProvider()
	w.applyText(thirdPartyTemplates + "---" + thirdPartyCluster)
	c := &Subject{World: w, Name: "c"}
	c.Eventually("the Cluster becomes ready", provisioned, Workers(2), copied, refersAsWritten, c.ExplainsNothing)
	w.nodesAreLabeled(c.Snapshot())

	leaving, staying := c.Snapshot().Workers()[0], c.Snapshot().Workers()[1]
	w.update(&leaving, func() { metav1.SetMetaDataAnnotation(&leaving.ObjectMeta, clusterv1.DeleteMachineAnnotation, "") })
	deployment := c.Snapshot().Deployments.Items[0].DeepCopy()
	scale := &autoscalingv1.Scale{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // Controllers write the MachineDeployment, too.
		if err := w.Client.SubResource("scale").Get(t.Context(), deployment, scale); err != nil {
			return err
		}
		if want := "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=workers"; scale.Status.Selector != want || scale.Status.Replicas != 2 {
			t.Errorf("autoscalers read %d replicas and selector %q, want 2 and %q", scale.Status.Replicas, scale.Status.Selector, want)
		}
		scale.Spec.Replicas = 1
		return w.Client.SubResource("scale").Update(t.Context(), deployment, client.WithSubResourceBody(scale))
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually("the marked Machine is drained and deleted, with an externally managed control plane", Workers(1), func(p *Snapshot) error {
		if have := p.Workers()[0].Name; have != staying.Name {
			return fmt.Errorf("%s is left, want %s", have, staying.Name)
		}
		return nil
	})

	failing := object("thirdparty.example.com/v1beta1", "FooMachine", w.Namespace, staying.Name)
	failing.Object["status"] = map[string]any{"failureReason": "CreateError", "failureMessage": "out of metal"}
	if err := w.Client.Status().Patch(t.Context(), failing, client.Merge); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the permanent failure of a machine is reported", func(p *Snapshot) error {
		s := p.Workers()[0].Status
		if s.Phase != "Failed" || s.FailureReason == nil || s.FailureMessage == nil || !strings.Contains(*s.FailureMessage, "out of metal") {
			return fmt.Errorf("the Machine's status is %+v", s)
		}
		return nil
	}, c.Explains("Failed Machine/"+staying.Name, "out of metal"))
	c.Delete()
}

// nodesAreLabeled checks the labels that Machines propagate to their Nodes.
func (w *World) nodesAreLabeled(p *Snapshot) {
	w.t.Helper()
	for _, m := range p.Workers() {
		node := &corev1.Node{}
		if err := w.Client.Get(w.t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
			w.t.Fatal(err)
		}
		want := map[string]string{"node.cluster.x-k8s.io/team": "a", "cluster.x-k8s.io/interruptible": ""}
		if diff := cmp.Diff(want, node.Labels); diff != "" {
			w.t.Errorf("labels of Node %s (-want +got):\n%s", node.Name, diff)
		}
	}
}

// TestThirdPartyClass uses a class with third-party templates in an older API version, whose CRDs have defaults. Objects are
// created once, patched, and rotated only if their content changes.
func TestThirdPartyClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.ThirdPartyProvider()
	w.applyText(thirdPartyTemplates + "---" + thirdPartyClass)
	cluster := NewCluster("c", "thirdparty").Workers(1).Build()
	cluster.Spec.Topology.ControlPlane.Replicas = nil
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", provisioned, Ready, Workers(1), w.disks(10, 3))
	before := w.generations()

	c.Change(SetWorkers(2))
	c.Eventually("the Cluster is scaled", Ready, Workers(2))
	if diff := cmp.Diff(before, w.generations()); diff != "" {
		t.Errorf("scaling changed objects of the provider (-before +after):\n%s", diff)
	}
	old := c.Snapshot()
	c.Change(setVariable("gb", 4))
	c.Eventually("a patch rolls out", Ready, Workers(2), NewMachines((*Snapshot).Workers, old), w.disks(10, 4))
	c.Delete()
}

// generations returns the generations of the provider's objects, except those of Machines.
func (w *World) generations() map[string]int64 {
	w.t.Helper()
	found := map[string]int64{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		if strings.HasPrefix(resource, "foo") && resource != "foomachines" && resource != "fooconfigs" {
			found[resource+"/"+o.Name] = o.Generation
		}
	})
	return found
}

// disks is true when every machine has disks with these sizes.
func (w *World) disks(want ...int64) Condition {
	return func(p *Snapshot) error {
		for _, m := range p.Workers() {
			machine := object("thirdparty.example.com/v1beta1", "FooMachine", w.Namespace, m.Name)
			if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				return err
			}
			spec, _ := machine.Object["spec"].(map[string]any)
			var have []int64
			list, _ := spec["disks"].([]any)
			for _, disk := range list {
				gb, _ := disk.(map[string]any)["gb"].(int64)
				have = append(have, gb)
			}
			if diff := cmp.Diff(want, have); diff != "" || spec["size"] != "small" {
				return fmt.Errorf("FooMachine %s is %v with disks (-want +got):\n%s", m.Name, spec["size"], diff)
			}
		}
		return nil
	}
}
