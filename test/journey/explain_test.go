package journey

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// fault is something that goes wrong in a fleet, and the root cause that `clusterctl explain` reports.
type fault struct {
	reason string
	// inject returns how to repair it.
	inject func(*Subject) (repair func())
	// cause is "Reason Kind" or "Reason Kind/name"; words are in its message.
	cause string
	words []string
	// soak is set if only soak tests inject it: what it takes is that of another one.
	soak bool
}

func frequentFaults() []fault {
	return []fault{
		{"another program keeps a finalizer", foreignFinalizer, "ForeignFinalizer InMemoryMachine", []string{"example.com/billing"}, false},
		{"bootstrap data refers to a Secret that does not exist", missingFile, "BootstrapFailed KubeadmConfig", []string{"files[0].contentFrom", "motd"}, false},
		{"a template was deleted", missingTemplate, "MissingObject MachineDeployment/workers", []string{"InMemoryMachineTemplate nowhere does not exist"}, true},
		{"a rollout was paused and forgotten", pausedRollout, "RolloutPaused MachineDeployment/workers", []string{"0 of 2"}, true},
		{"the pod network does not work on a Node", notReadyNode, "NodeUnhealthy Machine", []string{"Ready is False"}, true},
		{"a Node was deleted", deletedNode, "NodeUnhealthy Machine", []string{"no longer exists"}, false},
		{"a pool of addresses is exhausted", exhaustedPool, "AddressNotAllocated IPAddressClaim/second", []string{"InClusterIPPool small", "PoolExhausted"}, false},
		{"a quota does not allow another Machine", exhaustedQuota, "MachinesNotCreated MachineSet", []string{"exceeded quota: machines"}, true},
		{"the certificates of a control plane Machine have expired", expiredCertificates, "CertificatesExpired Machine", []string{"have expired"}, false},
		{"a health check has a template that does not exist", missingRemediation, "RemediationTemplate MachineHealthCheck/reboots", []string{"InMemoryMachineTemplate", "nowhere"}, true},
	}
}

// TestExplainsFrequentFaults lets one fault after another happen to a Cluster, and explains each; half of them in soak tests only.
func TestExplainsFrequentFaults(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	c := n.Plain(Plain{ControlPlanes: 1, Workers: 2}.String())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), c.ExplainsNothing)
	for _, f := range frequentFaults() {
		if f.soak && !testenv.Soaks() {
			continue
		}
		repair := f.inject(c)
		c.Eventually("explained: "+f.reason, c.Explains(f.cause, f.words...))
		repair()
		c.Eventually("repaired: "+f.reason, Ready, ControlPlanes(1), Workers(2), c.ExplainsNothing)
	}
	c.markUnhealthy(c.Snapshot().ControlPlane()[0])
	c.Eventually("the only control plane Machine is not replaced", c.Explains("RemediationBlocked Machine", "The only"))
	c.Delete()
}

func (c *Subject) setFinalizer(o *unstructured.Unstructured, held bool) {
	c.t.Helper()
	c.update(o, func() {
		var list []string
		for _, f := range o.GetFinalizers() {
			if !strings.HasPrefix(f, "example.com/") {
				list = append(list, f)
			}
		}
		if held {
			list = append(list, "example.com/billing")
		}
		o.SetFinalizers(list)
	})
}

func foreignFinalizer(c *Subject) (repair func()) {
	worker := c.Snapshot().Workers()[0]
	machine := object(worker.Spec.InfrastructureRef.APIVersion, worker.Spec.InfrastructureRef.Kind, c.Namespace, worker.Spec.InfrastructureRef.Name)
	c.setFinalizer(machine, true)
	c.delete(&worker)
	return func() { c.setFinalizer(machine, false) }
}

// delete deletes an object.
func (c *Subject) delete(o client.Object) {
	c.t.Helper()
	if err := c.Client.Delete(c.t.Context(), o); err != nil {
		c.t.Fatalf("deleting %s %s: %v", kindOf(o), o.GetName(), err)
	}
}

// workers changes the MachineDeployment.
func (c *Subject) workers(change func(*clusterv1.MachineDeployment)) {
	c.t.Helper()
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "workers"}}
	c.update(d, func() { change(d) })
}

func missingFile(c *Subject) (repair func()) {
	c.applyText(`
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: with-file}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {}}, files: [{path: /etc/motd, contentFrom: {secret: {name: motd, key: text}}}]}}}
`)
	c.workers(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "with-file" })
	return func() {
		c.Applied(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "motd"}, Data: map[string][]byte{"text": []byte("hello")}})
	}
}

func missingTemplate(c *Subject) (repair func()) {
	use := func(name string) {
		c.workers(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = name })
	}
	use("nowhere")
	return func() { use("workers") }
}

func pausedRollout(c *Subject) (repair func()) {
	c.rolledOut("pause", "machinedeployment/workers")
	c.workersVersion("v1.30.4")
	return func() { c.rolledOut("resume", "machinedeployment/workers") }
}

func notReadyNode(c *Subject) (repair func()) {
	worker := c.Snapshot().Workers()[0]
	set := func(status corev1.ConditionStatus) {
		node := &corev1.Node{}
		if err := c.Workload().client.Get(c.t.Context(), client.ObjectKey{Name: worker.Status.NodeRef.Name}, node); err != nil {
			c.t.Fatal(err)
		}
		before := node.DeepCopy()
		for i := range node.Status.Conditions {
			if node.Status.Conditions[i].Type == corev1.NodeReady {
				node.Status.Conditions[i].Status = status
			}
		}
		if err := c.Workload().client.Status().Patch(c.t.Context(), node, client.MergeFrom(before)); err != nil {
			c.t.Fatal(err)
		}
	}
	set(corev1.ConditionFalse)
	return func() { set(corev1.ConditionTrue) }
}

func deletedNode(c *Subject) (repair func()) {
	worker := c.Snapshot().Workers()[0]
	if err := c.Workload().client.Delete(c.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker.Status.NodeRef.Name}}); err != nil {
		c.t.Fatal(err)
	}
	return func() { c.delete(&worker) }
}

// exhaustedPool lets a machine claim a second address of a pool with one.
func exhaustedPool(c *Subject) (repair func()) {
	c.applyText(`
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: small}
spec: {addresses: [10.20.0.5], prefix: 24, gateway: 10.20.0.1}
`)
	ref := c.Snapshot().Workers()[0].Spec.InfrastructureRef
	machine := object(ref.APIVersion, ref.Kind, c.Namespace, ref.Name)
	c.read(machine)
	claim := func(name string) *unstructured.Unstructured {
		o := object(ipamv1.GroupVersion.String(), "IPAddressClaim", c.Namespace, name)
		o.SetOwnerReferences([]metav1.OwnerReference{ownership.Reference(machine, machine.GroupVersionKind(), true)})
		o.Object["spec"] = map[string]any{"poolRef": map[string]any{"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "small"}}
		return o
	}
	first, second := claim("first"), claim("second")
	c.Applied(first)
	c.Eventually("the first claim has the address", func(*Snapshot) error {
		c.read(first)
		return c.ExplainsNothing(nil)
	})
	c.Applied(second)
	return func() { c.delete(second); c.delete(first) }
}

// exhaustedQuota scales up when the namespace may not have another Machine.
func exhaustedQuota(c *Subject) (repair func()) {
	count := len(c.Snapshot().ControlPlane()) + len(c.Snapshot().Workers())
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "machines"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/machines.cluster.x-k8s.io": *resource.NewQuantity(int64(count), resource.DecimalSI),
		}},
	}
	c.Applied(quota)
	scale := func(n int) { c.workers(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To(int32(n)) }) }
	scale(3)
	return func() { scale(2); c.delete(quota) }
}

// expiredCertificates records that the certificates of the control plane's Machine expired an hour ago.
func expiredCertificates(c *Subject) (repair func()) {
	machine := c.Snapshot().ControlPlane()[0]
	expires := func(at time.Time) {
		c.update(&machine, func() {
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.MachineCertificatesExpiryDateAnnotation, at.UTC().Format(time.RFC3339))
		})
	}
	expires(time.Now().Add(-time.Hour))
	return func() { expires(time.Now().AddDate(1, 0, 0)) }
}

func missingRemediation(c *Subject) (repair func()) {
	check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "reboots"}, Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: c.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: "workers"}},
		UnhealthyConditions: sick(0, "100%").UnhealthyConditions, RemediationTemplate: &corev1.ObjectReference{APIVersion: poolInfrastructure, Kind: "InMemoryMachineTemplate", Name: "nowhere"},
		NodeStartupTimeout: ptr.To(metav1.Duration{Duration: 0}),
	}}
	c.Applied(check)
	return func() { c.delete(check) }
}

// TestExplainsMissingKind explains a Cluster whose infrastructure provider is not installed.
func TestExplainsMissingKind(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.applyText(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: NowhereCluster, name: c}}
`)
	c := &Subject{World: w, Name: "c"}
	c.Eventually("the kind is named", c.Explains("MissingKind Cluster/c", "NowhereCluster"))
}

// TestExplainsProviders explains Clusters whose providers do not run, in a management cluster of its own.
func TestExplainsProviders(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, shared.Management(t).Tools)
	if err := s.tools.install(t.Context(), s.kubeconfig()); err != nil {
		t.Fatal(err)
	}
	w := s.Management().World(t)
	c := w.Plain(Plain{ControlPlanes: 1, Workers: 1}.String())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.ExplainsNothing)
	for _, deployment := range []string{
		"capi-system/capi-controller-manager", "capi-kubeadm-bootstrap-system/capi-kubeadm-bootstrap-controller-manager",
		"capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-controller-manager", "capim-system/capim-controller-manager",
	} {
		namespace, name, _ := strings.Cut(deployment, "/")
		scale := func(replicas string) {
			if r := w.Tools.Kubectl(t.Context(), "", "scale", "deployment", name, "--namespace", namespace, "--replicas", replicas, "--kubeconfig", w.Kubeconfig); r.Failed {
				t.Fatal(r)
			}
		}
		scale("0")
		if namespace == "capi-system" {
			testenv.Eventually(t, "the webhook that converts Clusters stops", func() error {
				if c.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, &clusterv1.Cluster{}) == nil {
					return errors.New("the API server still converts")
				}
				return nil
			})
		}
		c.Eventually(name+" is scaled to 0", c.Explains("ProviderUnavailable Deployment/"+name, "is scaled to 0 replicas"))
		scale("1")
		c.Eventually(name+" is back", c.ExplainsNothing)
	}
	kubectl := func(args ...string) {
		if r := w.Tools.Kubectl(t.Context(), "", append(args, "--namespace", "capim-system", "--kubeconfig", w.Kubeconfig)...); r.Failed {
			t.Fatal(r)
		}
	}
	// With a rolling update, the component with the previous image would go on.
	kubectl("patch", "deployment", "capim-controller-manager", "--patch", `{"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}`)
	kubectl("set", "image", "deployment/capim-controller-manager", "manager=example.com/unknown:v1")
	c.Eventually("the image is wrong", c.Explains("ProviderUnavailable Deployment/capim-controller-manager", "no Pod of provider infrastructure-in-memory is available", "unknown"))
}
