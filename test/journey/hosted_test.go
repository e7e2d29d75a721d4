package journey

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const hostedClass = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: hosted}
spec: {template: {spec: {}}}
---
apiVersion: thirdparty.example.com/v1beta1
kind: FooControlPlaneTemplate
metadata: {name: hosted}
spec: {template: {spec: {disks: [{}]}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: hosted}
spec: {template: {spec: {}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: hosted}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: hosted}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: hosted}}
  controlPlane: {ref: {apiVersion: thirdparty.example.com/v1beta1, kind: FooControlPlaneTemplate, name: hosted}}
  workers:
    machineDeployments:
    - class: default-worker
      template:
        bootstrap: {ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: hosted}}
        infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: hosted}}
`

// hostedPlane returns the FooControlPlane of the Cluster.
func (c *Subject) hostedPlane() (*unstructured.Unstructured, error) {
	o := object(thirdPartyGroup+"/"+newestVersion, "FooControlPlane", c.Namespace, c.Snapshot().Cluster.Spec.ControlPlaneRef.Name)
	return o, c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(o), o)
}

// serves is true when the hosted control plane reports this version, and its API server has it.
func (c *Subject) serves(version string) Condition {
	return func(*Snapshot) error {
		o, err := c.hostedPlane()
		if err != nil {
			return err
		}
		if have, _, _ := unstructured.NestedString(o.Object, "status", "version"); have != version {
			return fmt.Errorf("the control plane reports version %q, want %s", have, version)
		}
		return nil
	}
}

// TestHostedControlPlane creates a Cluster whose control plane has no Machines, drains and deletes one of its workers, and deletes it.
func TestHostedControlPlane(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.HostedControlPlaneProvider()
	c := w.Plain(Plain{ControlPlane: hostedPlane, Workers: 2}.String())
	c.Eventually("the Cluster becomes ready", Ready, Workers(2), Version(older), c.serves(older), c.NodesMatch, c.ExplainsNothing)

	r := w.Tools.Clusterctl(t.Context(), "", "describe", "cluster", "c", "--namespace", w.Namespace, "--kubeconfig", w.Kubeconfig)
	if r.Failed || !strings.Contains(r.Out, "FooControlPlane "+w.Namespace+"/c") {
		t.Errorf("clusterctl must show the control plane: %s", r)
	}
	leaving, staying := c.Snapshot().Workers()[0], c.Snapshot().Workers()[1]
	release := c.blockDrain(leaving.Status.NodeRef.Name)
	w.update(&leaving, func() { metav1.SetMetaDataAnnotation(&leaving.ObjectMeta, clusterv1.DeleteMachineAnnotation, "") })
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "workers"}}
	w.update(deployment, func() { deployment.Spec.Replicas = ptr.To[int32](1) })
	c.Eventually("the Node is drained although there is no control plane Machine", func(p *Snapshot) error {
		for _, m := range p.Workers() {
			if drained := FindCondition(&m, clusterv1.DrainingSucceededCondition); m.Name == leaving.Name && drained != nil && strings.Contains(drained.Message, "cannot be evicted") {
				return nil
			}
		}
		return fmt.Errorf("Machine %s is not being drained", leaving.Name)
	}, c.Explains("DrainBlocked Machine/"+leaving.Name, "default/busy"))
	release()
	c.Eventually("the marked Machine is deleted", Ready, Workers(1), c.NodesMatch, func(p *Snapshot) error {
		if have := p.Workers()[0].Name; have != staying.Name {
			return fmt.Errorf("%s is left, want %s", have, staying.Name)
		}
		return nil
	})
	c.Gone()
}

// blockDrain runs a Pod on a Node, which cannot be evicted until release is called.
func (c *Subject) blockDrain(node string) (release func()) {
	c.t.Helper()
	ctx, workload := c.t.Context(), c.Workload().client
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "busy", Labels: map[string]string{"app": "busy"}}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "busy", Image: "busy"}}}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: *meta.DeepCopy(), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
	}}
	for _, o := range []client.Object{pod, budget} {
		if err := workload.Create(ctx, o); err != nil {
			c.t.Fatalf("creating %T in the workload cluster: %v", o, err)
		}
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := workload.Status().Update(ctx, pod); err != nil {
		c.t.Fatalf("starting a Pod in the workload cluster: %v", err)
	}
	return func() {
		c.t.Helper()
		if err := workload.Delete(ctx, budget); err != nil {
			c.t.Fatalf("deleting the disruption budget: %v", err)
		}
	}
}

// TestHostedControlPlaneOfAClass creates a Cluster from a class whose control plane has no Machines, and upgrades it: workers follow
// after the control plane has reported the new version, which takes as long as its provider needs.
func TestHostedControlPlaneOfAClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.HostedControlPlaneProvider()
	w.applyText(hostedClass)
	cluster := NewCluster("c", "hosted").Workers(2).Build()
	cluster.Spec.Topology.ControlPlane.Replicas = nil
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, Workers(2), Version(older), c.serves(older), c.NodesMatch)
	o, err := c.hostedPlane()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"replicas", "machineTemplate"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", field); found {
			t.Errorf("the topology controller set spec.%s to %v, but the class has no control plane Machines", field, value)
		}
	}

	w.update(o, func() { o.SetAnnotations(map[string]string{holdAnnotation: ""}) })
	before := c.Snapshot()
	still := c.Always("workers are upgraded after the control plane", func(p *Snapshot) error {
		if count(p.Workers(), ofVersion(newer)) == 0 {
			return nil
		}
		return c.serves(newer)(p)
	})
	c.Change(SetVersion(newer))
	c.Eventually("the topology waits for the control plane", c.serves(older), func(p *Snapshot) error {
		if reconciled := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition); reconciled == nil || !strings.Contains(reconciled.Message, "Control plane is upgrading to version "+newer) {
			return fmt.Errorf("condition %+v", reconciled)
		}
		return nil
	}, SameMachines((*Snapshot).Workers, before), c.Explains("ControlPlaneProvisioning FooControlPlane", "upgraded from "+older+" to "+newer))
	w.update(o, func() { o.SetAnnotations(nil) })
	c.Eventually("the workers follow", Ready, Workers(2), Version(newer), c.serves(newer), NewMachines((*Snapshot).Workers, before), c.NodesMatch)
	still()
	c.Gone()
}
